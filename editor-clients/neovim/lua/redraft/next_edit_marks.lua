--- How a next edit looks: its text in place where one sees it, else a sign and where to find it.

local hunks = require('redraft.hunks')
local text = require('redraft.text')

local M = {}

local namespace = vim.api.nvim_create_namespace('redraft.next_edit')
local SYMBOL = '⇥'

--- Rows of a next edit in its buffer, 0-based and inclusive.
---@param bufnr integer
---@param one redraft.NextEdit
---@param encoding redraft.Encoding
---@return integer first
---@return integer last
function M.rows(bufnr, one, encoding)
  local first = text.place(bufnr, one.range.start, encoding)
  local last, end_col = text.place(bufnr, one.range['end'], encoding)
  return first, end_col == 0 and math.max(first, last - 1) or last
end

---@param one redraft.NextEdit
---@return string where it is, and what
local function hint(one)
  local path = vim.fn.fnamemodify(vim.uri_to_fname(one.textDocument.uri), ':~:.')
  return ('%s %s:%d %s'):format(SYMBOL, path, one.range.start.line + 1, one.title)
end

---@param bufnr integer
---@param row integer
---@param note? string
local function mark(bufnr, row, note)
  vim.api.nvim_buf_set_extmark(bufnr, namespace, row, 0, {
    sign_text = SYMBOL,
    sign_hl_group = 'RedraftNextEdit',
    virt_text = note and { { note, 'RedraftNextEdit' } } or nil,
    virt_text_pos = note and 'eol' or nil,
  })
end

--- Draws a next edit in the window in front.
---@param bufnr integer
---@param one redraft.NextEdit
---@param is_full boolean whether its text may be shown
---@param encoding redraft.Encoding
---@return redraft.Hunk? hunk what accepting it applies, where its text is shown
function M.draw(bufnr, one, is_full, encoding)
  local cursor_row = vim.api.nvim_win_get_cursor(0)[1] - 1
  if one.textDocument.uri ~= vim.uri_from_bufnr(bufnr) then
    mark(bufnr, cursor_row, is_full and hint(one) or nil)
    return nil
  end
  local first, last = M.rows(bufnr, one, encoding)
  local is_in_view = last >= vim.fn.line('w0') - 1 and first <= vim.fn.line('w$') - 1
  if not is_in_view then
    mark(bufnr, first)
    mark(bufnr, cursor_row, is_full and hint(one) or nil)
    return nil
  end
  if not is_full then
    mark(bufnr, first)
    return nil
  end
  if not one.text then
    mark(bufnr, first, ('%s %s'):format(SYMBOL, one.title))
    return nil
  end
  local row, col = text.place(bufnr, one.range.start, encoding)
  local end_row, end_col = text.place(bufnr, one.range['end'], encoding)
  local old_text = table.concat(vim.api.nvim_buf_get_text(bufnr, row, col, end_row, end_col, {}), '\n')
  local proposed = { range = one.range, oldText = old_text, newText = one.text }
  return hunks.place(bufnr, { proposed }, 0, encoding, old_text == '' and 'RedraftGhost' or nil)[1]
end

--- What has to be the same for a drawing to stay right.
---@param bufnr integer
---@return string
function M.view(bufnr)
  local row = vim.api.nvim_win_get_cursor(0)[1]
  return ('%d %d %d %d'):format(bufnr, row, vim.fn.line('w0'), vim.fn.line('w$'))
end

---@param bufnr integer
---@param hunk? redraft.Hunk
function M.erase(bufnr, hunk)
  if vim.api.nvim_buf_is_valid(bufnr) then
    vim.api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
    hunks.remove(bufnr, { hunk })
  end
end

return M
