--- Options of the plugin, with their one default each.

local M = {}

---@type redraft.Config
local defaults = {
  cmd = { 'redraft', 'serve' },
  root_markers = { '.git', 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod' },
  settings = {},
  server_key = '',
  own_ghost_text = false,
  keymaps = {},
  preview_keymaps = {
    accept = '<C-y>',
    discard = '<C-e>',
    accept_hunk = 'gy',
    discard_hunk = 'gY',
    next_hunk = ']h',
    previous_hunk = '[h',
  },
  next_edit_keymaps = {
    take = '<Tab>',
    reject = '<C-]>',
    reject_in_normal_mode = '<Esc>',
  },
}

---@type redraft.Config
M.options = vim.deepcopy(defaults)

--- Takes the user's options. An unknown name is an error: a typo would otherwise go unnoticed.
---@param options? table
function M.set(options)
  for name in pairs(options or {}) do
    if defaults[name] == nil then
      error(("redraft: unknown option '%s'; see :help redraft-setup"):format(name), 0)
    end
  end
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(defaults), options or {})
end

---@param name string
---@return any what an option is unless the user says otherwise
function M.default(name)
  return defaults[name]
end

return M
