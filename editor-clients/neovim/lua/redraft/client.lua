--- The server's client in Neovim: finding it, asking it, across the versions of Neovim.

local M = {}

local has_methods = vim.fn.has('nvim-0.11') == 1

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
  local sent, id
  if has_methods then
    sent, id = client:request(method, params, handler, bufnr)
  else
    sent, id = client.request(method, params, handler, bufnr)
  end
  return sent and id or nil
end

---@param client vim.lsp.Client
---@param method string
---@param params table
function M.notify(client, method, params)
  if has_methods then
    client:notify(method, params)
  else
    client.notify(method, params)
  end
end

---@param client vim.lsp.Client
---@param id? integer
function M.cancel(client, id)
  if not id then
    return
  end
  if has_methods then
    client:cancel_request(id)
  else
    client.cancel_request(id)
  end
end

---@param client vim.lsp.Client
---@param force boolean
function M.stop(client, force)
  if has_methods then
    client:stop(force)
  else
    client.stop(force)
  end
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
