--- Edit with instruction: asks, requests, streams into virtual text, previews as hunks, applies what is accepted.
--- The buffer is untouched until then.

local client = require('redraft.client')
local config = require('redraft.config')
local hunks = require('redraft.hunks')
local text = require('redraft.text')

local M = {}

local namespace = vim.api.nvim_create_namespace('redraft.edit')
local stream_namespace = vim.api.nvim_create_namespace('redraft.stream')
local STREAMED_LINES = 15

---@type table<integer, redraft.Edit> one undecided edit for each buffer
local edits = {}

---@param message string
---@param level? integer
local function say(message, level)
  vim.notify('redraft: ' .. message, level or vim.log.levels.INFO)
end

---@param bufnr? integer
---@return redraft.Edit?
local function current(bufnr)
  return edits[bufnr or vim.api.nvim_get_current_buf()]
end

--- Notes for every version of the buffer in which row the region begins: the server's answer names the version that
--- it is for.
---@param edit redraft.Edit
---@param row integer
local function follow_region(edit, row)
  edit.row_of_version[vim.lsp.util.buf_versions[edit.bufnr]] = row
  vim.api.nvim_buf_attach(edit.bufnr, false, {
    on_lines = function(_, _, tick, _, last, new_last)
      if edits[edit.bufnr] ~= edit then
        return true
      end
      if last <= row then
        row = row + new_last - last
      end
      edit.row_of_version[tick] = row
      edit.row = row
    end,
  })
end

---@param edit redraft.Edit
---@param lines string[]
---@param note string
local function show_stream(edit, lines, note)
  local shown = { { { '▍ ' .. edit.instruction .. '  ', 'Title' }, { note, 'Comment' } } }
  for index = math.max(1, #lines - STREAMED_LINES + 1), #lines do
    shown[#shown + 1] = { { '▍ ' .. lines[index], 'RedraftGhost' } }
  end
  local mark = vim.api.nvim_buf_get_extmark_by_id(edit.bufnr, namespace, edit.region, { details = true })
  local last = math.max(mark[1], mark[3].end_col == 0 and mark[3].end_row - 1 or mark[3].end_row)
  last = math.min(last, vim.api.nvim_buf_line_count(edit.bufnr) - 1)
  vim.api.nvim_buf_set_extmark(edit.bufnr, stream_namespace, last, 0, { id = edit.region, virt_lines = shown })
end

---@param edit redraft.Edit
local function close(edit)
  client.cancel(edit.client, edit.request)
  edit.request = nil
  edits[edit.bufnr] = nil
  if vim.api.nvim_buf_is_valid(edit.bufnr) then
    hunks.remove(edit.bufnr, edit.hunks)
    vim.api.nvim_buf_clear_namespace(edit.bufnr, namespace, 0, -1)
    vim.api.nvim_buf_clear_namespace(edit.bufnr, stream_namespace, 0, -1)
    edit.give_keys_back()
  end
end

---@param edit redraft.Edit
local function map(edit)
  local keys = {}
  for name, key in pairs(config.options.preview_keymaps) do
    if key then
      local description = 'Redraft: ' .. name:gsub('_', ' ')
      keys[#keys + 1] = { mode = 'n', key = key, action = M[name], description = description }
    end
  end
  edit.give_keys_back = require('redraft.temporary_keys').map(edit.bufnr, keys)
end

---@param edit redraft.Edit
---@param result redraft.EditResult
local function finished(edit, result)
  vim.api.nvim_buf_clear_namespace(edit.bufnr, stream_namespace, 0, -1)
  local moved = edit.row - (edit.row_of_version[result.version] or edit.row)
  local dropped
  edit.hunks, dropped = hunks.place(edit.bufnr, result.hunks, moved, edit.client.offset_encoding)
  if dropped > 0 then
    say(('%d change(s) no longer fit the text and were left out'):format(dropped), vim.log.levels.WARN)
  end
  if #edit.hunks == 0 then
    if dropped == 0 then
      say('the model proposes no change')
    end
    close(edit)
    return
  end
  if result.warning and result.warning ~= '' then
    say(result.warning, vim.log.levels.WARN)
  end
  map(edit)
  local keys = config.options.preview_keymaps
  local hint = keys.accept and keys.discard and (' %s accepts, %s discards'):format(keys.accept, keys.discard)
  say(('%d change(s).%s'):format(#edit.hunks, hint or ' :Redraft accept or :Redraft discard'))
end

--- Requests an edit of a range and previews the answer.
---@param bufnr integer
---@param range redraft.Range
---@param instruction string
function M.run(bufnr, range, instruction)
  local owner = client.required(bufnr)
  if not owner then
    return
  end
  local former = current(bufnr)
  if former then
    close(former)
  end
  require('redraft.next_edits').hide()
  local row, col = text.place(bufnr, range.start, owner.offset_encoding)
  local end_row, end_col = text.place(bufnr, range['end'], owner.offset_encoding)
  local region = vim.api.nvim_buf_set_extmark(bufnr, namespace, row, col, {
    end_row = end_row,
    end_col = end_col,
    right_gravity = false,
    end_right_gravity = true,
  })
  ---@type redraft.Edit
  local edit = {
    bufnr = bufnr,
    client = owner,
    instruction = instruction,
    region = region,
    row = row,
    row_of_version = {},
    hunks = {},
    give_keys_back = function() end,
  }
  edits[bufnr] = edit
  follow_region(edit, row)
  show_stream(edit, {}, 'waiting; :Redraft cancel stops')
  local document = vim.lsp.util.make_text_document_params(bufnr)
  edit.request = client.request(owner, 'redraft/edit', {
    textDocument = { uri = document.uri, version = vim.lsp.util.buf_versions[bufnr] },
    range = range,
    instruction = instruction,
    streamToken = tostring(bufnr),
  }, function(err, result)
    edit.request = nil
    if edits[bufnr] ~= edit or not vim.api.nvim_buf_is_valid(bufnr) then
      return
    end
    if err then
      close(edit)
      say(err.message, vim.log.levels.ERROR)
    else
      finished(edit, result)
    end
  end, bufnr)
end

--- Text generated so far, from the server.
---@param progress { token: string, text: string, tokens: integer }
function M.streamed(progress)
  local edit = edits[tonumber(progress.token)]
  if edit and edit.request then
    local lines = vim.split(text.with_newlines(progress.text), '\n', { plain = true })
    show_stream(edit, lines, ('%d tokens; :Redraft cancel stops'):format(progress.tokens))
  end
end

--- Asks what should change in a range, then runs it. The server prepares while the user types.
---@param bufnr integer
---@param range redraft.Range
function M.ask(bufnr, range)
  local owner = client.required(bufnr)
  if not owner then
    return
  end
  client.notify(owner, 'redraft/prepareEdit', {
    textDocument = vim.lsp.util.make_text_document_params(bufnr),
    range = range,
  })
  local first, last = range.start.line + 1, range['end'].line + (range['end'].character > 0 and 1 or 0)
  local title = first >= last and ('Edit line %d'):format(first) or ('Edit lines %d to %d'):format(first, last)
  require('redraft.prompt').ask(title, function(instruction)
    M.run(bufnr, range, instruction)
  end)
end

--- Edits lines, 1-based and inclusive; asks for the instruction when there is none.
---@param first integer
---@param last integer
---@param instruction string
function M.lines(first, last, instruction)
  local bufnr = vim.api.nvim_get_current_buf()
  local owner = client.required(bufnr)
  if not owner then
    return
  end
  local range = text.range_of_lines(bufnr, first, last, owner.offset_encoding)
  if instruction == '' then
    M.ask(bufnr, range)
  else
    M.run(bufnr, range, instruction)
  end
end

--- The server's code action "Edit with instruction…".
---@param command lsp.Command
---@param context { bufnr: integer }
function M.from_code_action(command, context)
  local target = command.arguments[1]
  local bufnr = target.uri and vim.uri_to_bufnr(target.uri) or context.bufnr
  M.ask(bufnr, target.range)
end

--- Whether an edit of this buffer is running or undecided.
---@return 'running'|'preview'|nil
function M.state()
  local edit = current()
  return edit and (edit.request and 'running' or 'preview')
end

---@param edit redraft.Edit
---@param chosen redraft.Hunk[]
local function apply(edit, chosen)
  edit.hunks = vim.tbl_filter(function(hunk)
    return not vim.list_contains(chosen, hunk)
  end, edit.hunks)
  local left_out = hunks.apply(edit.bufnr, chosen)
  if left_out > 0 then
    say(('%d change(s) no longer fit the text and were left out'):format(left_out), vim.log.levels.WARN)
  end
  if #edit.hunks == 0 then
    close(edit)
  end
end

--- Accepts everything that is undecided, in one undo step.
function M.accept()
  local edit = current()
  if edit and #edit.hunks > 0 then
    apply(edit, edit.hunks)
  end
end

--- Discards everything that is undecided; stops a running edit.
function M.discard()
  local edit = current()
  if edit then
    close(edit)
  end
end

M.cancel = M.discard

---@param edit redraft.Edit
---@return redraft.Hunk?
local function at_cursor(edit)
  return hunks.at_row(edit.bufnr, edit.hunks, vim.api.nvim_win_get_cursor(0)[1] - 1)
end

function M.accept_hunk()
  local edit = current()
  local hunk = edit and at_cursor(edit)
  if edit and hunk then
    apply(edit, { hunk })
  end
end

function M.discard_hunk()
  local edit = current()
  local hunk = edit and at_cursor(edit)
  if edit and hunk then
    hunks.remove(edit.bufnr, { hunk })
    edit.hunks = vim.tbl_filter(function(one)
      return one ~= hunk
    end, edit.hunks)
    if #edit.hunks == 0 then
      close(edit)
    end
  end
end

---@param step 1|-1
local function go(step)
  local edit = current()
  if not edit or #edit.hunks == 0 then
    return
  end
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local rows = vim.tbl_map(function(hunk)
    return (hunks.range(edit.bufnr, hunk))
  end, edit.hunks)
  local target = step == 1 and rows[1] or rows[#rows]
  for index = step == 1 and #rows or 1, step == 1 and 1 or #rows, -step do
    if (rows[index] - row) * step > 0 then
      target = rows[index]
    end
  end
  local last = vim.api.nvim_buf_line_count(edit.bufnr)
  vim.api.nvim_win_set_cursor(0, { math.min(target + 1, last), 0 })
end

function M.next_hunk()
  go(1)
end

function M.previous_hunk()
  go(-1)
end

--- Shows the proposal beside the buffer in diff mode.
function M.diff()
  local edit = current()
  if not edit or #edit.hunks == 0 then
    say('there is no edit to compare', vim.log.levels.WARN)
    return
  end
  local lines = hunks.proposed_lines(edit.bufnr, edit.hunks)
  local filetype = vim.bo[edit.bufnr].filetype
  vim.cmd('tab split')
  vim.cmd('diffthis')
  vim.cmd('rightbelow vnew')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
  vim.bo.filetype, vim.bo.modifiable = filetype, false
  vim.cmd('diffthis')
end

return M
