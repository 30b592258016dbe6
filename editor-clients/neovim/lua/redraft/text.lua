--- Positions and pieces of text.

local M = {}

local has_encodings = vim.fn.has('nvim-0.11') == 1

--- Byte of a character offset in a line, at most the line's length.
---@param line string
---@param character integer
---@param encoding redraft.Encoding
---@return integer
function M.byte(line, character, encoding)
  if encoding == 'utf-8' then
    return math.min(character, #line)
  end
  if has_encodings then
    return vim.str_byteindex(line, encoding, character, false)
  end
  local utf32, utf16 = vim.str_utfindex(line)
  local most = encoding == 'utf-16' and utf16 or utf32
  return vim.str_byteindex(line, math.min(character, most), encoding == 'utf-16')
end

--- Character offset of a byte in a line.
---@param line string
---@param byte integer
---@param encoding redraft.Encoding
---@return integer
function M.character(line, byte, encoding)
  byte = math.min(byte, #line)
  if encoding == 'utf-8' then
    return byte
  end
  if has_encodings then
    return vim.str_utfindex(line, encoding, byte, false)
  end
  local utf32, utf16 = vim.str_utfindex(line, byte)
  return encoding == 'utf-16' and utf16 or utf32
end

--- Row and byte column of a position. A position after the last line becomes the end of the text.
---@param bufnr integer
---@param position redraft.Position
---@param encoding redraft.Encoding
---@return integer row
---@return integer col
function M.place(bufnr, position, encoding)
  local rows = vim.api.nvim_buf_line_count(bufnr)
  if position.line >= rows then
    local last = vim.api.nvim_buf_get_lines(bufnr, rows - 1, rows, false)[1] or ''
    return rows - 1, #last
  end
  local line = vim.api.nvim_buf_get_lines(bufnr, position.line, position.line + 1, false)[1] or ''
  return position.line, M.byte(line, position.character, encoding)
end

--- The range of whole lines, 1-based and inclusive.
---@param bufnr integer
---@param first integer
---@param last integer
---@param encoding redraft.Encoding
---@return redraft.Range
function M.range_of_lines(bufnr, first, last, encoding)
  local rows = vim.api.nvim_buf_line_count(bufnr)
  local from = { line = first - 1, character = 0 }
  if last < rows then
    return { start = from, ['end'] = { line = last, character = 0 } }
  end
  local line = vim.api.nvim_buf_get_lines(bufnr, rows - 1, rows, false)[1] or ''
  return { start = from, ['end'] = { line = rows - 1, character = M.character(line, #line, encoding) } }
end

--- Buffers hold lines without their endings, whatever the file has.
---@param text string
---@return string
function M.with_newlines(text)
  return (text:gsub('\r\n?', '\n'))
end

--- The part of a suggestion that a key takes: all, up to the end of a word, or up to the end of a line.
---@param text string
---@param piece redraft.Piece
---@return string
function M.piece(text, piece)
  if piece == 'word' then
    -- Bytes from 128 on belong to letters beyond ASCII and stay together.
    return text:match('^%s*[%w_\128-\255]+') or text:match('^%s*[^%w%s_\128-\255]+') or text
  elseif piece == 'line' then
    return text:match('^\n?[^\n]*')
  end
  return text
end

--- Inserts text and puts the cursor after it, as an undo step of its own.
---@param bufnr integer
---@param row integer
---@param col integer
---@param end_col integer
---@param text string
function M.insert(bufnr, row, col, end_col, text)
  -- Setting the option to itself ends the undo block (:help undo-break).
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  local lines = vim.split(text, '\n', { plain = true })
  vim.api.nvim_buf_set_text(bufnr, row, col, row, end_col, lines)
  local last = #lines == 1 and col + #text or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
end

return M
