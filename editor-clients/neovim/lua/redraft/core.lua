--- Suggestions drawn by Neovim itself (0.12, vim.lsp.inline_completion), with what it lacks: words, lines, asking now.

local client = require('redraft.client')
local text = require('redraft.text')

local M = {}

---@return boolean whether this Neovim draws suggestions itself
function M.available()
  return vim.lsp.inline_completion ~= nil
end

---@param bufnr integer
function M.attach(bufnr)
  vim.lsp.inline_completion.enable(true, { bufnr = bufnr })
end

---@return boolean whether a suggestion is shown in this buffer
function M.visible()
  local namespace = vim.api.nvim_get_namespaces()['nvim.lsp.inline_completion']
  return namespace ~= nil and #vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { limit = 1 }) > 0
end

--- Text of an item that is not in the buffer yet.
---@param item vim.lsp.inline_completion.Item
---@param row integer
---@param col integer
---@return string? nil when the buffer no longer goes with it
local function rest(item, row, col)
  local whole = item.insert_text
  if type(whole) ~= 'string' then
    return nil
  end
  if not item.range then
    return whole
  end
  if item.range.start_row ~= row then
    return nil
  end
  local typed = vim.api.nvim_get_current_line():sub(item.range.start_col + 1, col)
  return vim.startswith(whole, typed) and whole:sub(#typed + 1) or nil
end

--- Tells the server how much of a suggestion was taken; its own command counts as all of it.
---@param item vim.lsp.inline_completion.Item
---@param taken string
local function report(item, taken)
  local command = item.command
  local argument = command and command.arguments and command.arguments[1]
  local owner = vim.lsp.get_client_by_id(item.client_id)
  if not owner or type(argument) ~= 'table' then
    return
  end
  local counted = vim.tbl_extend('force', argument, { length = text.character(taken, #taken, 'utf-16') })
  client.execute(owner, command.command, { counted })
end

--- Takes the suggestion shown, or a piece of it.
---@param piece redraft.Piece
---@return boolean whether there was one
function M.accept(piece)
  return vim.lsp.inline_completion.get({
    on_accept = function(item)
      local row, col = unpack(vim.api.nvim_win_get_cursor(0))
      local left = rest(item, row - 1, col)
      if piece == 'all' or not left or left == '' then
        vim.bo.undolevels = vim.bo.undolevels
        return item
      end
      local taken = text.piece(left, piece)
      if taken == left then
        vim.bo.undolevels = vim.bo.undolevels
        return item
      end
      text.insert(0, row - 1, col, col, taken)
      local whole = item.insert_text --[[@as string]]
      report(item, whole:sub(1, #whole - #left + #taken))
      M.trigger('automatic')
      return nil
    end,
  })
end

---@param count integer
function M.select(count)
  vim.lsp.inline_completion.select({ count = count })
end

--- Asks now. The public interface only asks by itself, after a rest; without it we wait for that.
---@param kind? 'automatic'
function M.trigger(kind)
  local ok, capability = pcall(require, 'vim.lsp._capability')
  local completion = ok and capability.all and capability.all.inline_completion
  local completor = completion and completion.active[vim.api.nvim_get_current_buf()]
  if completor and completor.request then
    completor:request(kind == 'automatic' and 2 or 1)
  else
    vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = 0, modeline = false })
  end
end

--- Takes the suggestion away without leaving insert mode.
function M.dismiss()
  vim.lsp.inline_completion.get({
    on_accept = function()
      return nil
    end,
  })
end

return M
