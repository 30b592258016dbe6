--- Suggestions drawn by the plugin, for Neovim 0.10 and 0.11.

local client = require('redraft.client')
local text = require('redraft.text')

local M = {}

local namespace = vim.api.nvim_create_namespace('redraft.ghost')

---@type table<integer, redraft.Suggestion[]>
local suggestions = {}
---@type table<integer, integer>
local selected = {}
---@type table<integer, integer>
local running = {}
---@type table<integer, boolean>
local scheduled = {}

---@param bufnr integer
local function clear(bufnr)
  suggestions[bufnr] = nil
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
end

--- What of the selected suggestion is still to be typed at the cursor.
---@param bufnr integer
---@return string? rest
---@return redraft.Suggestion? suggestion
local function rest(bufnr)
  local suggestion = (suggestions[bufnr] or {})[selected[bufnr] or 1]
  if not suggestion then
    return nil
  end
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  if row - 1 ~= suggestion.row or col < suggestion.col then
    return nil
  end
  local typed = vim.api.nvim_get_current_line():sub(suggestion.col + 1, col)
  if not vim.startswith(suggestion.text, typed) or #typed == #suggestion.text then
    return nil
  end
  return suggestion.text:sub(#typed + 1), suggestion
end

---@param bufnr integer
local function draw(bufnr)
  vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  local left, suggestion = rest(bufnr)
  if not left or not suggestion then
    return
  end
  local lines = vim.split(left, '\n', { plain = true })
  local below = {}
  for index = 2, #lines do
    below[#below + 1] = { { lines[index], 'RedraftGhost' } }
  end
  local _, col = unpack(vim.api.nvim_win_get_cursor(0))
  local ends_line = col == #vim.api.nvim_get_current_line()
  vim.api.nvim_buf_set_extmark(bufnr, namespace, suggestion.row, col, {
    virt_text = { { lines[1], 'RedraftGhost' } },
    virt_text_pos = ends_line and 'overlay' or 'inline',
    virt_lines = below,
    hl_mode = 'combine',
  })
end

---@param bufnr integer
---@param items table[]
---@param encoding redraft.Encoding
---@return redraft.Suggestion[]
local function read(bufnr, items, encoding)
  local found = {}
  local cursor = vim.api.nvim_win_get_cursor(0)
  for _, item in ipairs(items) do
    local row, col, end_col = cursor[1] - 1, cursor[2], cursor[2]
    if item.range then
      row, col = text.place(bufnr, item.range.start, encoding)
      _, end_col = text.place(bufnr, item.range['end'], encoding)
    end
    if type(item.insertText) == 'string' then
      local content = text.with_newlines(item.insertText)
      found[#found + 1] = { row = row, col = col, end_col = end_col, text = content, command = item.command }
    end
  end
  return found
end

---@param bufnr integer
---@param kind 1|2
local function ask(bufnr, kind)
  local owner = client.of_buffer(bufnr)
  local is_asked = kind == 2 and require('redraft.inline').is_by_hand()
  if not owner or is_asked or vim.api.nvim_get_current_buf() ~= bufnr then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local cursor = vim.api.nvim_win_get_cursor(0)
  client.cancel(owner, running[bufnr])
  local position = vim.lsp.util.make_position_params(0, owner.offset_encoding)
  local params = {
    textDocument = position.textDocument,
    position = position.position,
    context = { triggerKind = kind },
  }
  running[bufnr] = client.request(owner, 'textDocument/inlineCompletion', params, function(err, result)
    running[bufnr] = nil
    local current = vim.api.nvim_buf_is_valid(bufnr)
      and vim.api.nvim_get_current_buf() == bufnr
      and vim.api.nvim_buf_get_changedtick(bufnr) == tick
      and vim.deep_equal(vim.api.nvim_win_get_cursor(0), cursor)
      and vim.startswith(vim.api.nvim_get_mode().mode, 'i')
    -- Superseded requests are answered with nothing; the newer one has what is to be shown.
    if err or not result or result == vim.NIL or not current then
      return
    end
    suggestions[bufnr] = read(bufnr, result.items or result, owner.offset_encoding)
    selected[bufnr] = 1
    draw(bufnr)
  end, bufnr)
end

--- Both events of one key, and several keys at once, make one request.
---@param bufnr integer
local function typed(bufnr)
  if vim.fn.pumvisible() == 1 then
    clear(bufnr)
    return
  end
  draw(bufnr)
  if scheduled[bufnr] then
    return
  end
  scheduled[bufnr] = true
  vim.schedule(function()
    scheduled[bufnr] = nil
    if vim.startswith(vim.api.nvim_get_mode().mode, 'i') then
      ask(bufnr, 2)
    end
  end)
end

---@param bufnr integer
local function leave(bufnr)
  local owner = client.of_buffer(bufnr)
  if owner then
    client.cancel(owner, running[bufnr])
  end
  running[bufnr] = nil
  clear(bufnr)
end

---@param bufnr integer
function M.attach(bufnr)
  local group = vim.api.nvim_create_augroup('redraft.ghost:' .. bufnr, { clear = true })
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'TextChangedI', 'CursorMovedI' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      typed(bufnr)
    end,
  })
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave', 'CompleteChanged' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      leave(bufnr)
    end,
  })
end

---@return boolean whether a suggestion is shown in this buffer
function M.visible()
  return rest(vim.api.nvim_get_current_buf()) ~= nil
end

--- Takes the suggestion shown, or a piece of it.
---@param piece redraft.Piece
---@return boolean whether there was one
function M.accept(piece)
  local bufnr = vim.api.nvim_get_current_buf()
  local left = rest(bufnr)
  if not left then
    return false
  end
  -- An <expr> mapping may not change the text itself.
  vim.schedule(function()
    local still, suggestion = rest(bufnr)
    if still ~= left or not suggestion then
      return
    end
    local row, col = unpack(vim.api.nvim_win_get_cursor(0))
    local taken = text.piece(left, piece)
    local whole = taken == left
    if whole then
      clear(bufnr)
    end
    text.insert(bufnr, row - 1, col, whole and math.max(col, suggestion.end_col) or col, taken)
    local owner, command = client.of_buffer(bufnr), suggestion.command
    if owner and command then
      local length = text.character(suggestion.text, #suggestion.text - #left + #taken, 'utf-16')
      local argument = vim.tbl_extend('force', (command.arguments or {})[1] or {}, { length = length })
      client.execute(owner, command.command, { argument })
    end
  end)
  return true
end

---@param count integer
function M.select(count)
  local bufnr = vim.api.nvim_get_current_buf()
  local all = suggestions[bufnr]
  if all and #all > 0 then
    selected[bufnr] = ((selected[bufnr] or 1) - 1 + count) % #all + 1
    draw(bufnr)
  end
end

---@param kind 1|2
function M.trigger(kind)
  ask(vim.api.nvim_get_current_buf(), kind)
end

--- Takes the suggestion away without leaving insert mode.
function M.dismiss()
  leave(vim.api.nvim_get_current_buf())
end

return M
