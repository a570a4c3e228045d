"""From bags and logs to series: topics, units, quality, and many bags at once."""
