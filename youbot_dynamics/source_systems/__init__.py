"""Systems of the source documents that no node and no command uses: a library for `import`, kept with its tests."""
