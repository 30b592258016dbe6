--- Starts the server again when it ended by itself, later each time, until it has stayed up for a minute.

local M = {}

local FIRST_DELAY_MS = 100
local LONGEST_DELAY_MS = 30000
local STABLE_AFTER_MS = 60000
local CHECK_EVERY_MS = 50
local PATIENCE_MS = 3000
--- The name of the client that has the buffers while no server runs.
local WAITING = 'redraft-waiting'

local delay = FIRST_DELAY_MS
local last_exit = 0
--- Whether the server was stopped to be started again.
local restarts = false
---@type table<integer, vim.lsp.ClientConfig>
local config_of_buffer = {}

---@param client vim.lsp.Client
---@param bufnr integer
function M.attached(client, bufnr)
  config_of_buffer[bufnr] = client.config
end

---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
local function nothing(dispatchers)
  local closing = false
  return {
    request = function(method, _, answer)
      answer(nil, method == 'initialize' and { capabilities = {} } or nil)
      return true, 1
    end,
    notify = function()
      return true
    end,
    is_closing = function()
      return closing
    end,
    terminate = function()
      closing = true
      dispatchers.on_exit(0, 0)
    end,
  }
end

---@param name string
---@param force boolean
local function stop_all(name, force)
  for _, client in ipairs(vim.lsp.get_clients({ name = name })) do
    require('redraft.client').stop(client, force)
  end
end

local function start_all()
  for bufnr, config in pairs(config_of_buffer) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      vim.lsp.start(config, { bufnr = bufnr })
    else
      config_of_buffer[bufnr] = nil
    end
  end
  restarts = false
  stop_all(WAITING, true)
end

---@return boolean whether the user still wants the server
local function wanted()
  local enabled = vim.lsp.is_enabled
  local by_config = vim.fn.has('nvim-0.12') == 1 and enabled and vim.lsp.config.redraft
  return vim.v.exiting == vim.NIL and (not by_config or enabled('redraft') or vim.g.redraft_setup == true)
end

--- Neovim stops listening to a buffer for good when it changes while no client has it: the next server would never
--- hear of what is typed. So another client has it before that of the server which ended lets go of it.
vim.api.nvim_create_autocmd('LspDetach', {
  group = vim.api.nvim_create_augroup('redraft.restart', { clear = true }),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    local ended = client and client.name == 'redraft' and client.rpc.is_closing()
    if ended and wanted() and config_of_buffer[event.buf] then
      vim.lsp.start({ name = WAITING, cmd = nothing }, { bufnr = event.buf })
    end
  end,
})

--- A server that was asked to stop ends with code 0; any other end is worth another try.
---@param code integer
---@param signal integer
function M.exited(code, signal)
  vim.schedule(function()
    require('redraft.status').ended(code)
    if (code == 0 and signal == 0) or not wanted() then
      -- Neovim 0.10 and 0.11 let go of the buffers behind this.
      vim.schedule(function()
        if not restarts then
          stop_all(WAITING, true)
        end
      end)
      return
    end
    local now = vim.uv.now()
    if now - last_exit > STABLE_AFTER_MS then
      delay = FIRST_DELAY_MS
    end
    last_exit = now
    vim.defer_fn(start_all, delay)
    delay = math.min(2 * delay, LONGEST_DELAY_MS)
  end)
end

--- Stops the server and starts it for the same buffers once it has gone: a client that is still stopping would be
--- taken for the one that is expected.
---@param command? string[] of another server
function M.restart(command)
  delay = FIRST_DELAY_MS
  restarts = true
  for _, config in pairs(command and config_of_buffer or {}) do
    config.cmd = command
  end
  local waited = 0
  local function start_when_gone()
    if #vim.lsp.get_clients({ name = 'redraft' }) == 0 then
      start_all()
      return
    end
    waited = waited + CHECK_EVERY_MS
    if waited == PATIENCE_MS then
      stop_all('redraft', true)
    end
    vim.defer_fn(start_when_gone, CHECK_EVERY_MS)
  end
  stop_all('redraft', false)
  start_when_gone()
end

return M
