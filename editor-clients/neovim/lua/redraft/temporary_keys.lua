--- Keys of one buffer that mean something for a while, and then what they meant before.

local M = {}

---@class redraft.TemporaryKey
---@field mode string
---@field key string
---@field action fun()
---@field description string

---@class redraft.ReplacedKey
---@field mode string
---@field key string
---@field former? table the buffer's own mapping, as maparg() gives it

--- Maps keys in a buffer.
---@param bufnr integer
---@param keys redraft.TemporaryKey[]
---@return fun() give_back makes the keys what they were
function M.map(bufnr, keys)
  ---@type redraft.ReplacedKey[]
  local replaced = {}
  vim.api.nvim_buf_call(bufnr, function()
    for _, one in ipairs(keys) do
      local former = vim.fn.maparg(one.key, one.mode, false, true)
      local is_of_buffer = next(former) ~= nil and former.buffer == 1
      replaced[#replaced + 1] = { mode = one.mode, key = one.key, former = is_of_buffer and former or nil }
      vim.keymap.set(one.mode, one.key, one.action, { buffer = bufnr, nowait = true, desc = one.description })
    end
  end)
  return function()
    if not vim.api.nvim_buf_is_valid(bufnr) then
      return
    end
    vim.api.nvim_buf_call(bufnr, function()
      for _, one in ipairs(replaced) do
        pcall(vim.keymap.del, one.mode, one.key, { buffer = bufnr })
        if one.former then
          vim.fn.mapset(one.mode, false, one.former)
        end
      end
    end)
  end
end

--- Presses a key as if no one had seen it yet.
---@param key string
function M.press(key)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(key, true, true, true), 'mi', false)
end

return M
