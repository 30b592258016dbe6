"""The entry point ``redraft`` of an isolated process."""

import sys

from lsp_server.commands.cli.main import main

sys.exit(main())
