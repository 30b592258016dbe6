--- Redraft in Neovim: completes and edits code through the server `redraft`. See :help redraft.

local M = {}

--- Starts Redraft for all files. Where you prefer `vim.lsp.enable('redraft')`, this call is not needed.
---@param options? table see redraft.Config
function M.setup(options)
  local config = require('redraft.config')
  config.set(options)
  require('redraft.inline').map(config.options.keymaps)
  vim.g.redraft_setup = true
  require('redraft.server').enable()
end

--- One short text for the statusline.
---@return string
function M.statusline()
  return require('redraft.status').component()
end

return M
