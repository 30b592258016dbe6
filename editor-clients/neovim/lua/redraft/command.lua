--- The command `:Redraft`.

local client = require('redraft.client')

local M = {}

---@param name string
---@return fun()
local function of_edit(name)
  return function()
    require('redraft.edit')[name]()
  end
end

--- Runs a command of the server on the buffer in front and shows how things stand afterwards.
---@param command string
---@param given? table<string, any>
---@return fun()
local function of_server(command, given)
  return function()
    local owner = client.required()
    if owner then
      local argument = vim.tbl_extend('force', { uri = vim.uri_from_bufnr(0) }, given or {})
      client.execute(owner, command, { argument }, function()
        require('redraft.status').ask(function() end)
      end)
    end
  end
end

--- Opens the log of the server; where no daemon runs, Neovim's own log, which says why.
local function show_log()
  local command = { require('redraft.config').options.cmd[1], 'status', '--json' }
  local started, process = pcall(vim.system, command, { text = true })
  local result = started and process:wait(10000)
  local ok, status = pcall(vim.json.decode, result and result.stdout or '')
  local path = ok and status.log and vim.fs.joinpath(status.log, 'daemon.log') or vim.lsp.get_log_path()
  vim.cmd.tabedit(vim.fn.fnameescape(path))
end

---@type table<string, fun(call: table)>
M.actions = {
  edit = function(call)
    local words = table.concat({ unpack(call.fargs, 2) }, ' ')
    require('redraft.edit').lines(call.line1, call.line2, words)
  end,
  accept = of_edit('accept'),
  discard = of_edit('discard'),
  cancel = of_edit('cancel'),
  accept_hunk = of_edit('accept_hunk'),
  discard_hunk = of_edit('discard_hunk'),
  next_hunk = of_edit('next_hunk'),
  previous_hunk = of_edit('previous_hunk'),
  diff = of_edit('diff'),
  status = function()
    require('redraft.status').show()
  end,
  reindex = of_server('redraft.reindex'),
  pause = of_server('redraft.pause'),
  resume = of_server('redraft.resume'),
  snooze = function(call)
    local minutes = tonumber(call.fargs[2] or 10)
    of_server('redraft.snooze', { minutes = minutes })()
  end,
  allow = of_server('redraft.allowFile'),
  hold_back = of_server('redraft.holdBackFile'),
  model = function()
    require('redraft.model').choose()
  end,
  log = show_log,
  restart = function()
    require('redraft.restart').restart()
  end,
}

---@param call table as nvim_create_user_command() passes it
function M.run(call)
  local name = call.fargs[1] or 'status'
  local action = M.actions[name]
  if not action then
    vim.notify(("redraft: no action '%s'; see :help :Redraft"):format(name), vim.log.levels.ERROR)
    return
  end
  action(call)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match('Redraft%s+%S+%s') then
    return line:match('Redraft%s+edit%s') and require('redraft.prompt').history() or {}
  end
  local names = vim.tbl_keys(M.actions)
  table.sort(names)
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names)
end

return M
