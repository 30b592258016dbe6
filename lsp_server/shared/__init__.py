"""Things that every process uses: the contract, settings, errors, child processes, user files."""
