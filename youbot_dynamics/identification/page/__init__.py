"""Parts of the report: each turns a piece of an identification into HTML or SVG that needs no network."""
