--- Usable by itself: vim.lsp.enable('redraft')
return require('redraft.server').config()
