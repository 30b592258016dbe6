--- The server's client in Neovim: finding it, asking it, across the versions of Neovim.

local M = {}

--- Calls a method of a client, which is a plain function before Neovim 0.11.
---@param client vim.lsp.Client
---@param name string
local function call(client, name, ...)
  if vim.fn.has('nvim-0.11') == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

--- The running client of a buffer, or nil.
---@param bufnr? integer
---@return vim.lsp.Client?
function M.of_buffer(bufnr)
  return vim.lsp.get_clients({ name = 'redraft', bufnr = bufnr or vim.api.nvim_get_current_buf() })[1]
end

--- The client of a buffer, else any; nil, with a message, when none runs.
---@param bufnr? integer
---@return vim.lsp.Client?
function M.required(bufnr)
  local client = M.of_buffer(bufnr) or vim.lsp.get_clients({ name = 'redraft' })[1]
  if not client then
    vim.notify('redraft: no server runs here; :checkhealth redraft says why', vim.log.levels.WARN)
  end
  return client
end

---@param client vim.lsp.Client
---@param method string
---@param params table
---@param handler fun(err?: lsp.ResponseError, result: any)
---@param bufnr? integer
---@return integer? request id, nil when the server is gone
function M.request(client, method, params, handler, bufnr)
  local sent, id = call(client, 'request', method, params, handler, bufnr)
  return sent and id or nil
end

---@param client vim.lsp.Client
---@param method string
---@param params table
function M.notify(client, method, params)
  call(client, 'notify', method, params)
end

---@param client vim.lsp.Client
---@param id? integer
function M.cancel(client, id)
  if id then
    call(client, 'cancel_request', id)
  end
end

---@param client vim.lsp.Client
---@param force boolean
function M.stop(client, force)
  call(client, 'stop', force)
end

--- Runs a command of the server.
---@param client vim.lsp.Client
---@param command string
---@param arguments any[]
---@param handler? fun(err?: lsp.ResponseError, result: any)
function M.execute(client, command, arguments, handler)
  local function answered(err, result)
    if err then
      vim.notify('redraft: ' .. err.message, vim.log.levels.ERROR)
    elseif handler then
      handler(nil, result)
    end
  end
  M.request(client, 'workspace/executeCommand', { command = command, arguments = arguments }, answered)
end

return M
