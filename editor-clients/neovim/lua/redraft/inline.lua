--- Suggestions while typing: one set of actions over Neovim's own drawing and ours.

local client = require('redraft.client')
local config = require('redraft.config')

local M = {}

---@type any[]? the buffer, its text and the cursor for which the user asked by hand last
local by_hand

---@return any[]
local function place()
  local bufnr = vim.api.nvim_get_current_buf()
  return { bufnr, vim.api.nvim_buf_get_changedtick(bufnr), vim.api.nvim_win_get_cursor(0) }
end

--- Neovim tells of a typed key after the keys right behind it: then the user may have asked already.
---@return boolean whether the user asked by hand at this place
function M.is_by_hand()
  return vim.deep_equal(by_hand, place())
end

---@return table the drawing in use
local function drawing()
  local is_neovims = vim.lsp.inline_completion and not config.options.own_ghost_text
  return require(is_neovims and 'redraft.core' or 'redraft.ghost')
end

---@param bufnr integer
function M.attach(bufnr)
  drawing().attach(bufnr)
end

---@return boolean whether a suggestion is shown in this buffer
function M.visible()
  return drawing().visible()
end

for name, piece in pairs({ accept = 'all', accept_word = 'word', accept_line = 'line' }) do
  ---@return boolean whether there was a suggestion to take
  M[name] = function()
    return drawing().accept(piece)
  end
end

function M.next()
  drawing().select(1)
end

function M.previous()
  drawing().select(-1)
end

--- Asks for suggestions now, for several where the server has them.
function M.trigger()
  by_hand = place()
  vim.api.nvim_create_autocmd('InsertLeave', {
    once = true,
    callback = function()
      by_hand = nil
    end,
  })
  drawing().trigger(1)
end

--- Asks again for what was asked for last: by the key, or as if a key had been typed.
function M.refresh()
  if client.of_buffer() then
    drawing().trigger(M.is_by_hand() and 1 or 2)
  end
end

---@return boolean whether there was a suggestion to take away
function M.dismiss()
  local visible = M.visible()
  drawing().dismiss()
  if visible then
    -- A next edit may have waited behind it.
    require('redraft.next_edits').more(vim.uri_from_bufnr(0))
  end
  return visible
end

--- Maps keys of insert mode. A key that finds nothing to do stays what it was.
---@param keymaps redraft.Keymaps
function M.map(keymaps)
  for name, key in pairs(keymaps) do
    if key and not M[name] then
      error(("redraft: unknown keymap '%s'; see :help redraft-setup"):format(name), 0)
    end
    if key then
      local former = vim.fn.maparg(key, 'i', false, true)
      vim.keymap.set('i', key, function()
        if name == 'trigger' or M.visible() then
          -- Neovim looks for mappings before the keys typed ahead of this one are in the text.
          vim.schedule(M[name])
          return ''
        end
        return former.expr == 1 and former.callback and former.callback() or key
      end, { expr = true, desc = 'Redraft: ' .. name:gsub('_', ' ') })
    end
  end
end

return M
