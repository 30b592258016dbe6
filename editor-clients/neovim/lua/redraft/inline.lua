--- Suggestions while typing: one set of actions over Neovim's own drawing and ours.

local client = require('redraft.client')
local config = require('redraft.config')

local M = {}

---@return table the drawing in use
local function drawing()
  local core = require('redraft.core')
  if core.available() and not config.options.own_ghost_text then
    return core
  end
  return require('redraft.ghost')
end

---@param bufnr integer
function M.attach(bufnr)
  drawing().attach(bufnr)
end

---@return boolean whether a suggestion is shown in this buffer
function M.visible()
  return drawing().visible()
end

---@return boolean whether there was a suggestion to take
function M.accept()
  return drawing().accept('all')
end

---@return boolean
function M.accept_word()
  return drawing().accept('word')
end

---@return boolean
function M.accept_line()
  return drawing().accept('line')
end

function M.next()
  drawing().select(1)
end

function M.previous()
  drawing().select(-1)
end

--- Asks for suggestions now, for several where the server has them.
function M.trigger()
  drawing().trigger()
end

--- Asks again as if a key had been typed.
function M.refresh()
  if client.of_buffer() then
    drawing().trigger('automatic')
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
      vim.keymap.set('i', key, function()
        if name == 'trigger' or M.visible() then
          M[name]()
          return ''
        end
        return key
      end, { expr = true, desc = 'Redraft: ' .. name:gsub('_', ' ') })
    end
  end
end

return M
