if vim.g.loaded_redraft then
  return
end
vim.g.loaded_redraft = true

-- Plugin managers make the tags of the help; a folder that was merely put on the runtime path has none.
local doc = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h') .. '/doc'
if vim.fn.getftime(doc .. '/tags') < vim.fn.getftime(doc .. '/redraft.txt') then
  pcall(vim.cmd.helptags, doc)
end

vim.api.nvim_create_user_command('Redraft', function(call)
  require('redraft.command').run(call)
end, {
  nargs = '*',
  range = true,
  desc = 'Edit with an instruction, decide on an edit, ask the server',
  complete = function(lead, line)
    return require('redraft.command').complete(lead, line)
  end,
})

vim.api.nvim_create_user_command('RedraftModel', function()
  require('redraft.model').choose()
end, { desc = 'Choose one of the models on this machine, or fetch one' })

vim.api.nvim_create_user_command('RedraftNextEdit', function()
  require('redraft.next_edits').ask()
end, { desc = 'Show what follows from the last change' })

vim.api.nvim_create_user_command('RedraftInstall', function(call)
  require('redraft.install').install(call.args ~= '' and call.args or nil)
end, { nargs = '?', complete = 'file', desc = 'Install the server into an environment of its own' })

for name, action in pairs({ ['next-edit'] = 'take', ['next-edit-reject'] = 'reject' }) do
  vim.keymap.set({ 'n', 'i' }, ('<Plug>(redraft-%s)'):format(name), function()
    require('redraft.next_edits')[action]()
  end, { desc = 'Redraft: ' .. name:gsub('-', ' ') })
end

for _, name in ipairs({ 'accept', 'accept_word', 'accept_line', 'next', 'previous', 'trigger', 'dismiss' }) do
  vim.keymap.set('i', ('<Plug>(redraft-%s)'):format(name:gsub('_', '-')), function()
    require('redraft.inline')[name]()
  end, { desc = 'Redraft: ' .. name:gsub('_', ' ') })
end

for _, name in ipairs({ 'accept', 'discard', 'accept_hunk', 'discard_hunk', 'next_hunk', 'previous_hunk', 'diff' }) do
  vim.keymap.set('n', ('<Plug>(redraft-edit-%s)'):format(name:gsub('_', '-')), function()
    require('redraft.edit')[name]()
  end, { desc = 'Redraft: ' .. name:gsub('_', ' ') })
end
vim.keymap.set('n', '<Plug>(redraft-edit)', '<Cmd>Redraft edit<CR>', { desc = 'Redraft: edit this line' })
vim.keymap.set('x', '<Plug>(redraft-edit)', ':Redraft edit<CR>', { desc = 'Redraft: edit these lines' })

-- A terminal without true colours shows of a group what it has for `cterm`. Neovim's own colours have nothing there for ghost
-- text, which would look like the text around it.
local function grey_in_terminals(name)
  local group = vim.api.nvim_get_hl(0, { name = name, link = false })
  if not group.ctermfg and not group.ctermbg and vim.tbl_isempty(group.cterm or {}) then
    group.ctermfg = (vim.env.TERM or ''):find('256color') and 244 or 8
    vim.api.nvim_set_hl(0, name, group)
  end
end

local function highlights()
  local links = {
    RedraftGhost = 'ComplHint',
    RedraftAdd = 'DiffAdd',
    RedraftDelete = 'DiffDelete',
    RedraftNote = 'DiagnosticVirtualTextWarn',
    RedraftNextEdit = 'DiagnosticHint',
  }
  if vim.fn.hlexists('ComplHint') == 0 then
    links.RedraftGhost = 'Comment'
  end
  for name, target in pairs(links) do
    vim.api.nvim_set_hl(0, name, { link = target, default = true })
  end
  if vim.fn.hlexists('ComplHint') == 1 then
    grey_in_terminals('ComplHint')
  end
  grey_in_terminals('RedraftGhost')
end
highlights()
vim.api.nvim_create_autocmd('ColorScheme', { callback = highlights })
