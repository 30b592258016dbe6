--- What the server last said about itself: for the statusline, `:Redraft status` and `:checkhealth redraft`.

local client = require('redraft.client')

local M = {}

---@type redraft.Status?
M.latest = nil
---@type string? why the server last ended
M.last_end = nil

local SYMBOLS = { ready = '⚡', loading = '…', indexing = '⟳', paused = '⏸', error = '✗', inactive = '–' }

--- Says on one line how far the model is that is fetched, since Neovim shows no progress by itself.
---@param fetching string
---@param before string
local function tell_fetching(fetching, before)
  if fetching == before then
    return
  end
  local text = 'redraft: ' .. (fetching ~= '' and fetching or 'fetching has ended')
  vim.api.nvim_echo({ { vim.fn.strcharpart(text, 0, vim.v.echospace) } }, false, {})
end

--- Takes a status of the server and tells who listens to the event `User RedraftStatus`.
---@param status redraft.Status
function M.changed(status)
  local was_unready = not M.latest or M.latest.state == 'loading'
  local answers = status.state == 'ready' or status.state == 'indexing'
  tell_fetching(status.fetching or '', M.latest and M.latest.fetching or '')
  M.latest = status
  if was_unready and answers and vim.startswith(vim.api.nvim_get_mode().mode, 'i') then
    -- What was asked for while the model was loading, or before the server ran, may have been answered with nothing.
    require('redraft.inline').refresh()
  end
  vim.api.nvim_exec_autocmds('User', { pattern = 'RedraftStatus', modeline = false, data = status })
  vim.cmd.redrawstatus()
end

---@param code integer
function M.ended(code)
  if code ~= 0 then
    M.last_end = ('ended with code %d at %s'):format(code, os.date('%H:%M:%S'))
  end
  M.latest = nil
end

--- A short text such as "⚡ redraft 2.4×", empty where no server runs.
---@return string
function M.component()
  local status = M.latest
  if not status or not client.of_buffer() then
    return ''
  end
  local detail = ''
  if status.state == 'indexing' and status.index and (status.index.total or 0) > 0 then
    detail = (' %d/%d'):format(status.index.done or 0, status.index.total)
  elseif status.state == 'ready' and type(status.tokensPerForward) == 'number' then
    detail = (' %.1f×'):format(status.tokensPerForward)
  elseif status.state ~= 'ready' then
    detail = ' ' .. status.state
  end
  return ('%s redraft%s'):format(SYMBOLS[status.state] or '', detail)
end

--- Lines that say how things stand.
---@param status redraft.Status
---@return string[]
function M.lines(status)
  local index = type(status.index) == 'table' and status.index or {}
  local server = type(status.server) == 'table' and status.server or {}
  local rows = {
    { 'state', status.state },
    { 'message', status.message },
    { 'why', status.reason },
    { 'what to do', status.remedy },
    { 'model', status.model },
    { 'server', server.url and ('%s, answered by: %s'):format(server.url, server.answers) },
    { 'model of edits', status.editModel ~= status.model and status.editModel },
    { 'settings', type(status.modelNotes) == 'table' and table.concat(status.modelNotes, '; ') },
    { 'workspace', status.workspace },
    { 'index', index.files and ('%d files'):format(index.files) },
    { 'prompt', type(status.promptTokens) == 'number' and ('%d tokens at most'):format(status.promptTokens) },
    { 'tokens per forward', type(status.tokensPerForward) == 'number' and ('%.1f'):format(status.tokensPerForward) },
  }
  local lines = {}
  for _, row in ipairs(rows) do
    if type(row[2]) == 'string' and row[2] ~= '' then
      lines[#lines + 1] = ('%s: %s'):format(row[1], row[2])
    end
  end
  return lines
end

--- Asks the server about the buffer in front.
---@param answered fun(status: redraft.Status)
function M.ask(answered)
  local owner = client.required()
  if not owner then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params() }
  client.request(owner, 'redraft/status', params, function(err, status)
    if err then
      vim.notify('redraft: ' .. err.message, vim.log.levels.ERROR)
    elseif status then
      M.changed(status)
      answered(status)
    end
  end)
end

function M.show()
  M.ask(function(status)
    vim.notify('redraft\n' .. table.concat(M.lines(status), '\n'))
  end)
end

return M
