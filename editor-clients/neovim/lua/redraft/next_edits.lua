--- Next edits: after a change, what follows from it is shown where it belongs. One key goes there and takes it,
--- another one sends it away. Keys are mapped only while there is something to take.

local client = require('redraft.client')
local config = require('redraft.config')
local hunks = require('redraft.hunks')
local marks = require('redraft.next_edit_marks')
local text = require('redraft.text')

local M = {}

local DEBOUNCE_MS = 150
local LONGEST_WAIT_MS = 300
local MENU_CLOSES_MS = 20
--- For so long after next edits were drawn a menu that opens was not asked for by hand.
local MENU_OPENS_MS = 900

---@type redraft.ShownNextEdits?
local shown
---@type { client: vim.lsp.Client, id?: integer, bufnr: integer, tick: integer }?
local running
---@type table<integer, integer> changedtick of each buffer when the server was last asked
local asked_ticks = {}
---@type table<string, boolean> those that the user was led to or decided on
local decided = {}
---@type table<string, boolean> those that the server knows to be shown
local announced = {}
---@type integer? a buffer whose next edit the user asked to see
local wanted_in
---@type fun()? gives the keys back that belong to a chain while its next one is asked for
local stop_waiting
---@type string? the line for which a menu was closed: not twice
local closed_line
---@type table? nvim-cmp, once its menu is listened to
local watched_cmp
local timer = assert(vim.uv.new_timer())

--- A server that was started again counts anew.
---@param one redraft.NextEdit
---@return string
local function name_of(one)
  return ('%d %s %s'):format(one.number, one.textDocument.uri, one.title)
end

local menu_changed ---@type fun()

---@return boolean is_open whether a menu of completions is open: Neovim's own, nvim-cmp's or blink.cmp's
---@return fun()? close closes it, where it opened by itself and nothing in it is chosen
local function menu()
  local cmp, blink = package.loaded['cmp'], package.loaded['blink.cmp']
  if type(cmp) == 'table' and cmp.event and watched_cmp ~= cmp then
    watched_cmp = cmp
    cmp.event:on('menu_opened', menu_changed)
    cmp.event:on('menu_closed', menu_changed)
  end
  local close ---@type fun()
  local is_chosen, is_by_hand ---@type boolean, boolean
  if vim.fn.pumvisible() == 1 then
    local info = vim.fn.complete_info({ 'mode', 'selected' })
    -- With noinsert the first one is marked by itself.
    is_chosen = info.selected > 0 or (info.selected == 0 and not vim.o.completeopt:find('noinsert'))
    local opens_by_itself = vim.fn.exists('+autocomplete') == 1 and vim.o.autocomplete
    is_by_hand = not opens_by_itself and info.mode ~= 'eval'
    close = function()
      -- <C-e> would count as a change of the text.
      vim.api.nvim_feedkeys(vim.keycode('<C-x><C-z>'), 'n', false)
    end
  elseif type(cmp) == 'table' and cmp.visible and cmp.visible() then
    is_chosen, close = cmp.get_active_entry() ~= nil, cmp.close
    is_by_hand = vim.tbl_get(cmp, 'core', 'context', 'option', 'reason') == 'manual'
  elseif type(blink) == 'table' and blink.is_menu_visible and blink.is_menu_visible() then
    is_chosen, close = require('blink.cmp.completion.list').is_explicitly_selected, blink.hide
    is_by_hand = vim.tbl_get(require('blink.cmp.completion.trigger'), 'context', 'trigger', 'initial_kind') == 'manual'
  else
    return false
  end
  return true, not is_chosen and not is_by_hand and close or nil
end

---@param beside_menu? boolean a menu does not count
---@return boolean whether something else wants the keys and the place: a completion, its menu, a snippet
local function is_taken_up(beside_menu)
  if not vim.startswith(vim.api.nvim_get_mode().mode, 'i') then
    return false
  end
  local in_snippet = vim.snippet and vim.snippet.active({ direction = 1 })
  return (not beside_menu and menu()) or in_snippet or require('redraft.inline').visible()
end

---@param owner vim.lsp.Client
---@return boolean whether only signs are shown until the key is pressed
local function is_quiet(owner)
  local settings = (owner.settings or owner.config.settings or {}).redraft
  return vim.tbl_get(settings or {}, 'nextEdits', 'display') == 'sign'
end

local function end_wait()
  if stop_waiting then
    local stop = stop_waiting
    stop_waiting = nil
    stop()
  end
end

--- Takes the next edit off the screen and gives the keys back.
function M.hide()
  if shown then
    local former = shown
    shown = nil
    marks.erase(former.bufnr, former.hunk)
    former.give_keys_back()
  end
end

local function cancel()
  timer:stop()
  end_wait()
  if running then
    local former = running
    running = nil
    client.cancel(former.client, former.id)
  end
end

---@return boolean whether the text is still the one that was asked about
local function is_current()
  return shown ~= nil
    and vim.api.nvim_get_current_buf() == shown.bufnr
    and vim.api.nvim_buf_get_changedtick(shown.bufnr) == shown.tick
end

--- The one at the cursor, else the next one below, else the first of the buffer, else one of another file.
---@param answer redraft.ShownNextEdits
---@return redraft.NextEdit?
local function nearest(answer)
  local uri = vim.uri_from_bufnr(answer.bufnr)
  local cursor_row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local below, top, elsewhere
  local below_row, top_row = math.huge, math.huge
  for _, one in ipairs(answer.edits) do
    if one.textDocument.uri ~= uri then
      elsewhere = elsewhere or one
    else
      local first, last = marks.rows(answer.bufnr, one, answer.client.offset_encoding)
      if last >= cursor_row and first < below_row then
        below, below_row = one, first
      end
      if first < top_row then
        top, top_row = one, first
      end
    end
  end
  return below or top or elsewhere
end

---@param one redraft.NextEdit
local function announce(one)
  if not announced[name_of(one)] then
    announced[name_of(one)] = true
    client.notify(shown.client, 'textDocument/didShowInlineEdit', { item = { command = one.command } })
  end
end

local function draw()
  marks.erase(shown.bufnr, shown.hunk)
  shown.hunk, shown.view = nil, marks.view(shown.bufnr)
  local one = nearest(shown)
  if not one then
    M.hide()
    return
  end
  if one ~= shown.current then
    shown.is_asked_for = shown.is_asked_for and shown.current == nil
    shown.current = one
  end
  local is_full = shown.is_asked_for or not is_quiet(shown.client)
  shown.hunk = marks.draw(shown.bufnr, one, is_full, shown.client.offset_encoding)
  announce(one)
end

--- What a key does: its action where there is something to act on, else what it always did.
---@param name 'take'|'reject'
---@param key string
---@return fun()
local function action(name, key)
  return function()
    if is_current() and not is_taken_up() then
      M[name]()
    elseif not stop_waiting then
      M.hide()
      require('redraft.temporary_keys').press(key)
    end
  end
end

local ask ---@type fun(bufnr: integer, is_asked_for: boolean, by_key?: boolean)

---@param bufnr integer
---@return fun() give_back
local function map_keys(bufnr)
  local options = config.options.next_edit_keymaps
  local keys = {}
  for _, one in ipairs({
    { 'n', 'take', options.take, 'go to the next edit, or take it' },
    { 'i', 'take', options.take, 'go to the next edit, or take it' },
    { 'n', 'reject', options.reject_in_normal_mode, 'reject the next edit' },
    { 'i', 'reject', options.reject, 'reject the next edit' },
  }) do
    local mode, name, key, description = unpack(one)
    if key then
      keys[#keys + 1] = {
        mode = mode,
        key = key,
        action = action(name, key),
        description = 'Redraft: ' .. description,
      }
    end
  end
  return require('redraft.temporary_keys').map(bufnr, keys)
end

--- Those of an answer that can be shown; nil where it is not one, or is for another text.
---@param bufnr integer
---@param result any
---@return redraft.NextEdit[]?
local function readable(bufnr, result)
  if type(result) ~= 'table' or type(result.edits) ~= 'table' then
    return nil
  end
  local uri, version = vim.uri_from_bufnr(bufnr), vim.lsp.util.buf_versions[bufnr]
  local found = {}
  for _, one in ipairs(result.edits) do
    if one.textDocument.uri == uri and one.textDocument.version ~= version then
      return nil
    end
    if not decided[name_of(one)] then
      one.text = type(one.text) == 'string' and one.text or nil
      found[#found + 1] = one
    end
  end
  return found
end

---@param bufnr integer
---@param is_asked_for boolean by the user: shown in full, and the user is told when there is none
---@param by_key? boolean a key of the user led to it
function ask(bufnr, is_asked_for, by_key)
  cancel()
  local owner = client.of_buffer(bufnr)
  if not owner or vim.api.nvim_get_current_buf() ~= bufnr then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local position = vim.lsp.util.make_position_params(0, owner.offset_encoding)
  position.asked = is_asked_for or by_key or shown ~= nil
  local request = { client = owner, bufnr = bufnr, tick = tick }
  running, asked_ticks[bufnr] = request, tick
  request.id = client.request(owner, 'redraft/nextEdit', position, function(err, result)
    if running ~= request then
      return
    end
    running = nil
    end_wait()
    if vim.api.nvim_get_current_buf() ~= bufnr or vim.api.nvim_buf_get_changedtick(bufnr) ~= tick then
      return
    end
    M.hide()
    local edits = not err and readable(bufnr, result) or {}
    local _, close = menu()
    if close and #edits > 0 and (result.first or by_key) and not closed_line then
      -- The name is whole, or taken, and the menu would change it: the key is the next edit's.
      closed_line = vim.api.nvim_get_current_line()
      close()
      vim.defer_fn(function()
        ask(bufnr, is_asked_for, true)
      end, MENU_CLOSES_MS)
    elseif #edits > 0 and not is_taken_up() and not require('redraft.edit').state() then
      shown = {
        bufnr = bufnr,
        client = owner,
        tick = tick,
        edits = edits,
        is_asked_for = is_asked_for,
        drawn_ms = vim.uv.now(),
        give_keys_back = map_keys(bufnr),
      }
      draw()
    elseif is_asked_for then
      vim.notify('redraft: ' .. (err and err.message or 'no next edit'))
    end
  end, bufnr)
end

--- Asks for the next one of a chain. Until it is there the keys do nothing, for a moment at most: behind the last one
--- a model may be asked.
---@param bufnr integer
---@param is_asked_for boolean
local function go_on(bufnr, is_asked_for)
  ask(bufnr, is_asked_for, true)
  if running and running.bufnr == bufnr then
    local stop = map_keys(bufnr)
    stop_waiting = stop
    vim.defer_fn(function()
      if stop_waiting == stop then
        end_wait()
      end
    end, LONGEST_WAIT_MS)
  end
end

--- Asks when nothing happens for a while, unless the user is about to take something else.
---@param bufnr integer
local function ask_soon(bufnr)
  cancel()
  timer:start(DEBOUNCE_MS, 0, vim.schedule_wrap(function()
    local mode = vim.api.nvim_get_mode().mode
    if vim.api.nvim_buf_is_valid(bufnr) and mode:match('^[ni]') and not is_taken_up(true) then
      ask(bufnr, false)
    end
  end))
end

--- The server knows more of a document than it answered; a request that waits or runs gets it.
---@param uri string
function M.more(uri)
  local bufnr = vim.api.nvim_get_current_buf()
  if uri == vim.uri_from_bufnr(bufnr) and not running and not timer:is_active() then
    ask(bufnr, shown ~= nil and shown.is_asked_for)
  end
end

--- Asks by hand: shows the next edit in full, or says that there is none.
function M.ask()
  if client.required() then
    ask(vim.api.nvim_get_current_buf(), true)
  end
end

---@param one redraft.NextEdit
local function forget(one)
  decided[name_of(one)] = true
  shown.edits = vim.tbl_filter(function(other)
    return other ~= one
  end, shown.edits)
end

--- Puts the cursor where a next edit is, in its file.
---@param one redraft.NextEdit
local function jump(one)
  local owner, bufnr = shown.client, shown.bufnr
  local place = { start = one.range.start, ['end'] = one.range.start }
  if not one.text then
    client.execute(owner, one.command.command, one.command.arguments)
    forget(one)
  end
  if one.textDocument.uri == vim.uri_from_bufnr(bufnr) then
    local row, col = text.place(bufnr, place.start, owner.offset_encoding)
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { row + 1, col })
    vim.cmd('normal! zv')
    shown.is_asked_for = one.text ~= nil
    draw()
    return
  end
  M.hide()
  local other = vim.uri_to_bufnr(one.textDocument.uri)
  vim.lsp.util.show_document(
    { uri = one.textDocument.uri, range = place },
    owner.offset_encoding,
    { reuse_win = true, focus = true }
  )
  wanted_in = other
  if client.of_buffer(other) then
    M.entered(other)
  end
end

---@param one redraft.NextEdit
---@param hunk redraft.Hunk
local function accept(one, hunk)
  local owner, bufnr = shown.client, shown.bufnr
  local row, col = hunks.range(bufnr, hunk)
  shown.hunk = nil
  M.hide()
  decided[name_of(one)] = true
  -- The server knows it by its number until the text is changed.
  client.execute(owner, one.command.command, one.command.arguments)
  if hunks.apply(bufnr, { hunk }) == 0 then
    local lines = vim.split(hunk.new_text, '\n', { plain = true })
    local last = math.min(row + #lines, vim.api.nvim_buf_line_count(bufnr))
    vim.api.nvim_win_set_cursor(0, { last, #lines == 1 and col + #lines[1] or #lines[#lines] })
    -- What is typed next is an undo step of its own.
    vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  end
  go_on(bufnr, false)
end

--- Goes to the next edit where the cursor is elsewhere, shows it where only its sign is shown, else takes it.
function M.take()
  if not is_current() then
    M.hide()
    return
  end
  local one = shown.current
  local is_here = one.textDocument.uri == vim.uri_from_bufnr(shown.bufnr)
  local first, last = marks.rows(shown.bufnr, one, shown.client.offset_encoding)
  local cursor_row = vim.api.nvim_win_get_cursor(0)[1] - 1
  if not one.text or not is_here or cursor_row < first or cursor_row > last then
    jump(one)
  elseif shown.hunk then
    accept(one, shown.hunk)
  else
    shown.is_asked_for = true
    draw()
  end
end

--- Sends the next edit away for good.
function M.reject()
  if not is_current() then
    M.hide()
    return
  end
  local bufnr, one = shown.bufnr, shown.current
  client.execute(shown.client, 'redraft.nextEdit.rejected', { { number = one.number } })
  forget(one)
  M.hide()
  ask(bufnr, false)
end

--- The buffer was entered: what was proposed for its file is shown in it.
---@param bufnr integer
function M.entered(bufnr)
  if wanted_in == bufnr then
    wanted_in = nil
    go_on(bufnr, true)
  else
    ask_soon(bufnr)
  end
end

---@param bufnr integer
local function changed(bufnr)
  if closed_line ~= vim.api.nvim_get_current_line() then
    closed_line = nil
  end
  if asked_ticks[bufnr] ~= vim.api.nvim_buf_get_changedtick(bufnr) then
    M.hide()
    ask_soon(bufnr)
  end
end

--- Draws anew where the window shows other lines or the cursor is elsewhere.
local function moved()
  if is_taken_up() then
    M.hide()
  elseif is_current() and shown.view ~= marks.view(shown.bufnr) then
    draw()
  end
end

--- A completion may have come, and wins; or one that was in the way has gone.
local function completed()
  local bufnr = vim.api.nvim_get_current_buf()
  local is_asked = asked_ticks[bufnr] == vim.api.nvim_buf_get_changedtick(bufnr)
  if shown then
    moved()
  elseif not is_asked and not running and not timer:is_active() then
    ask_soon(bufnr)
  end
end

--- A menu opened or closed: ours is drawn where none is.
menu_changed = vim.schedule_wrap(function()
  local is_open, close = menu()
  if is_open and close and is_current() and not closed_line then
    if vim.uv.now() - shown.drawn_ms < MENU_OPENS_MS then
      closed_line = vim.api.nvim_get_current_line()
      return close()
    end
  elseif not is_open and not shown then
    asked_ticks[vim.api.nvim_get_current_buf()] = nil
  end
  completed()
end)

local function watch_completions()
  local group = vim.api.nvim_create_augroup('redraft.next_edits', { clear = true })
  vim.api.nvim_create_autocmd('LspRequest', {
    group = group,
    callback = function(event)
      local request = event.data.request
      if request.type == 'complete' and request.method == 'textDocument/inlineCompletion' then
        vim.schedule(completed)
      end
    end,
  })
  vim.api.nvim_create_autocmd('WinScrolled', { group = group, callback = moved })
  vim.api.nvim_create_autocmd({ 'CompleteChanged', 'CompleteDone' }, { group = group, callback = menu_changed })
  local menus = { 'BlinkCmpMenuOpen', 'BlinkCmpMenuClose' }
  vim.api.nvim_create_autocmd('User', { group = group, pattern = menus, callback = menu_changed })
end

---@param bufnr integer
function M.attach(bufnr)
  local group = vim.api.nvim_create_augroup('redraft.next_edits:' .. bufnr, { clear = true })
  ---@param events string[]
  ---@param callback fun()
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, function()
    changed(bufnr)
  end)
  on({ 'CursorMoved', 'CursorMovedI' }, moved)
  on({ 'InsertLeave' }, function()
    if not shown and not running then
      ask_soon(bufnr)
    end
  end)
  on({ 'BufEnter' }, function()
    M.entered(bufnr)
  end)
  on({ 'BufLeave' }, function()
    cancel()
    M.hide()
  end)
  watch_completions()
  if vim.api.nvim_get_current_buf() == bufnr then
    M.entered(bufnr)
  end
end

return M
