--- Hunks of a proposed edit in a buffer: extmarks keep them in place while the text changes around them.

local text = require('redraft.text')

local M = {}

local namespace = vim.api.nvim_create_namespace('redraft.hunks')
local note_namespace = vim.api.nvim_create_namespace('redraft.notes')

--- Where a hunk lies now.
---@param bufnr integer
---@param hunk redraft.Hunk
---@return integer row
---@return integer col
---@return integer end_row
---@return integer end_col
function M.range(bufnr, hunk)
  local mark = vim.api.nvim_buf_get_extmark_by_id(bufnr, namespace, hunk.mark, { details = true })
  return mark[1], mark[2], mark[3].end_row, mark[3].end_col
end

---@param bufnr integer
---@param hunk redraft.Hunk
---@return lsp.TextEdit
local function text_edit(bufnr, hunk)
  local row, col, end_row, end_col = M.range(bufnr, hunk)
  local from, to = { line = row, character = col }, { line = end_row, character = end_col }
  return { range = { start = from, ['end'] = to }, newText = hunk.new_text }
end

--- Text of the buffer between two places. A row after the last line stands for the end of the last line.
---@param bufnr integer
---@param row integer
---@param col integer
---@param end_row integer
---@param end_col integer
---@return string
local function text_between(bufnr, row, col, end_row, end_col)
  local rows = vim.api.nvim_buf_line_count(bufnr)
  local behind = end_row >= rows
  if row >= rows then
    return ''
  end
  if behind then
    end_row = rows - 1
    end_col = #vim.api.nvim_buf_get_lines(bufnr, end_row, end_row + 1, false)[1]
  end
  local lines = vim.api.nvim_buf_get_text(bufnr, row, col, end_row, end_col, {})
  return table.concat(lines, '\n') .. (behind and '\n' or '')
end

--- Whether a hunk still replaces what the server saw.
---@param bufnr integer
---@param hunk redraft.Hunk
---@return boolean
function M.fits(bufnr, hunk)
  local row, col, end_row, end_col = M.range(bufnr, hunk)
  if end_row < row or (end_row == row and end_col < col) then
    -- The text was replaced as a whole, which turned the mark inside out.
    return false
  end
  local now = text_between(bufnr, row, col, end_row, end_col)
  -- The last line of a buffer has a line ending only in the file.
  return now == hunk.old_text or now == hunk.old_text .. '\n' or now .. '\n' == hunk.old_text
end

---@param lines string[]
---@param highlight string
---@return table[]
local function virtual(lines, highlight)
  return vim.tbl_map(function(line)
    return { { line == '' and ' ' or line, highlight } }
  end, lines)
end

--- Shows what goes away struck through and what comes as virtual text.
---@param bufnr integer
---@param hunk redraft.Hunk
---@param row integer
---@param col integer
---@param end_row integer
---@param end_col integer
---@return integer mark
local function draw(bufnr, hunk, row, col, end_row, end_col)
  local rows = vim.api.nvim_buf_line_count(bufnr)
  local options = {
    id = hunk.mark ~= 0 and hunk.mark or nil,
    end_row = math.min(end_row, rows),
    end_col = end_row >= rows and 0 or end_col,
    hl_group = 'RedraftDelete',
    hl_eol = true,
    right_gravity = true,
    end_right_gravity = false,
    strict = false,
  }
  local lines = vim.split(hunk.new_text, '\n', { plain = true })
  local shown_row, shown_col = math.min(end_row, rows - 1), end_col
  local up_to_line_start = col == 0 and end_col == 0 and (hunk.new_text == '' or lines[#lines] == '')
  local last_line = vim.api.nvim_buf_get_lines(bufnr, shown_row, shown_row + 1, false)[1] or ''
  local up_to_line_end = col == 0 and end_col > 0 and end_col == #last_line
  local whole_lines = up_to_line_start or up_to_line_end
  if up_to_line_start then
    lines[#lines] = nil
    -- New lines are below the old ones; an insertion is above the line that follows it.
    shown_row, shown_col = math.max(end_row - 1, 0), 0
  end
  local mark = vim.api.nvim_buf_set_extmark(bufnr, namespace, math.min(row, rows), col, options)
  if hunk.new_text ~= '' then
    local added = {}
    if whole_lines then
      added.virt_lines = virtual(lines, hunk.highlight)
      added.virt_lines_above = up_to_line_start and end_row == 0
    else
      added.virt_text = { { lines[1], hunk.highlight } }
      added.virt_text_pos = 'inline'
      added.virt_lines = virtual({ unpack(lines, 2) }, hunk.highlight)
    end
    local drawn = vim.api.nvim_create_namespace('redraft.added')
    vim.api.nvim_buf_set_extmark(bufnr, drawn, shown_row, shown_col, vim.tbl_extend('force', added, { id = mark }))
  end
  if hunk.note ~= '' then
    vim.api.nvim_buf_set_extmark(bufnr, note_namespace, math.min(row, rows - 1), 0, {
      id = mark,
      virt_text = { { '⚠ ' .. hunk.note, 'RedraftNote' } },
      virt_text_pos = 'eol',
    })
  end
  return mark
end

--- Places the server's hunks, moved by as many rows as their region has moved since.
---@param bufnr integer
---@param proposed redraft.ServerHunk[]
---@param moved_rows integer
---@param encoding redraft.Encoding
---@param highlight? string of what comes
---@return redraft.Hunk[] fitting
---@return integer dropped hunks whose text has changed meanwhile
function M.place(bufnr, proposed, moved_rows, encoding, highlight)
  local hunks, dropped = {}, 0
  local rows = vim.api.nvim_buf_line_count(bufnr)
  local function moved(position)
    local now = { line = position.line + moved_rows, character = position.character }
    if now.line >= rows then
      return rows, 0
    end
    return text.place(bufnr, now, encoding)
  end
  for _, one in ipairs(proposed) do
    ---@type redraft.Hunk
    local hunk = {
      mark = 0,
      old_text = text.with_newlines(one.oldText),
      new_text = text.with_newlines(one.newText),
      note = one.note or '',
      highlight = highlight or 'RedraftAdd',
    }
    local row, col = moved(one.range.start)
    local end_row, end_col = moved(one.range['end'])
    hunk.mark = draw(bufnr, hunk, row, col, end_row, end_col)
    if M.fits(bufnr, hunk) then
      hunks[#hunks + 1] = hunk
    else
      M.remove(bufnr, { hunk })
      dropped = dropped + 1
    end
  end
  return hunks, dropped
end

--- Takes hunks off the screen.
---@param bufnr integer
---@param hunks redraft.Hunk[]
function M.remove(bufnr, hunks)
  local drawn = vim.api.nvim_create_namespace('redraft.added')
  for _, hunk in ipairs(hunks) do
    vim.api.nvim_buf_del_extmark(bufnr, namespace, hunk.mark)
    vim.api.nvim_buf_del_extmark(bufnr, drawn, hunk.mark)
    vim.api.nvim_buf_del_extmark(bufnr, note_namespace, hunk.mark)
  end
end

--- Applies hunks in one undo step and takes them off the screen.
---@param bufnr integer
---@param hunks redraft.Hunk[]
---@return integer left_out hunks that no longer fitted
function M.apply(bufnr, hunks)
  local edits, left_out = {}, 0
  for _, hunk in ipairs(hunks) do
    if M.fits(bufnr, hunk) then
      edits[#edits + 1] = text_edit(bufnr, hunk)
    else
      left_out = left_out + 1
    end
  end
  M.remove(bufnr, hunks)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  vim.lsp.util.apply_text_edits(edits, bufnr, 'utf-8')
  return left_out
end

--- The buffer's lines with all hunks applied.
---@param bufnr integer
---@param hunks redraft.Hunk[]
---@return string[]
function M.proposed_lines(bufnr, hunks)
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
  local edits = vim.tbl_map(function(hunk)
    return text_edit(bufnr, hunk)
  end, hunks)
  vim.lsp.util.apply_text_edits(edits, scratch, 'utf-8')
  local lines = vim.api.nvim_buf_get_lines(scratch, 0, -1, false)
  vim.api.nvim_buf_delete(scratch, { force = true })
  return lines
end

--- The hunk at a row, else the nearest one above it, else the first.
---@param bufnr integer
---@param hunks redraft.Hunk[]
---@param row integer
---@return redraft.Hunk?
function M.at_row(bufnr, hunks, row)
  local found = hunks[1]
  for _, hunk in ipairs(hunks) do
    if M.range(bufnr, hunk) <= row then
      found = hunk
    end
  end
  return found
end

return M
