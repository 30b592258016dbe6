--- Suggestions drawn by Neovim itself (0.12, vim.lsp.inline_completion), with what it lacks: words, lines, asking now.

local client = require('redraft.client')
local text = require('redraft.text')

local M = {}

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
  if item.range.start_row ~= row or item.range.start_col > col then
    return nil
  end
  local typed = vim.api.nvim_get_current_line():sub(item.range.start_col + 1, col)
  return vim.startswith(whole, typed) and #typed < #whole and whole:sub(#typed + 1) or nil
end

---@param bufnr integer
---@return table? completor what Neovim knows of a buffer, which has no public name
---@return table class
local function completor_of(bufnr)
  local ok, capability = pcall(require, 'vim.lsp._capability')
  local class = ok and capability.all and capability.all.inline_completion or {}
  return class.request and class.active[bufnr], class
end

---@param bufnr integer
function M.attach(bufnr)
  vim.lsp.inline_completion.enable(true, { bufnr = bufnr })
  vim.api.nvim_create_autocmd({ 'CursorMovedI', 'TextChangedP' }, {
    group = vim.api.nvim_create_augroup('redraft.core:' .. bufnr, { clear = true }),
    buffer = bufnr,
    callback = function()
      local completor = completor_of(bufnr)
      local item = completor and completor.current
      local row, col = unpack(vim.api.nvim_win_get_cursor(0))
      if item and type(item.insert_text) == 'string' and not rest(item, row - 1, col) then
        -- Neovim goes on drawing it until it has asked again, whatever was typed.
        completor.current = nil
        completor:hide()
      end
    end,
  })
end

--- Tells the server how much of a suggestion was taken; its own command counts as all of it.
---@param owner vim.lsp.Client
---@param item vim.lsp.inline_completion.Item
---@param taken string
local function report(owner, item, taken)
  local command = item.command
  local argument = command and command.arguments and command.arguments[1]
  if type(argument) ~= 'table' then
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
      local owner = assert(vim.lsp.get_client_by_id(item.client_id))
      if piece == 'all' and owner.name ~= 'redraft' then
        return item
      end
      local row, col = unpack(vim.api.nvim_win_get_cursor(0))
      local left = rest(item, row - 1, col)
      if not left then
        return nil
      end
      -- Neovim itself would put all of it before what was typed of it meanwhile.
      local taken = text.piece(left, piece)
      text.insert(0, row - 1, col, col, taken)
      local whole = item.insert_text --[[@as string]]
      report(owner, item, whole:sub(1, #whole - #left + #taken))
      if taken ~= left then
        M.trigger(2)
      end
      return nil
    end,
  })
end

---@param count integer
function M.select(count)
  vim.lsp.inline_completion.select({ count = count })
end

--- Asks now. The public interface only asks by itself, after a rest; without it we wait for that.
---@param kind 1|2
function M.trigger(kind)
  local completor, class = completor_of(vim.api.nvim_get_current_buf())
  if not completor then
    vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = 0, modeline = false })
    return
  end
  completor.request = function(self, own_kind)
    if own_kind == 1 or not require('redraft.inline').is_by_hand() then
      class.request(self, own_kind)
    end
  end
  completor:request(kind)
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
