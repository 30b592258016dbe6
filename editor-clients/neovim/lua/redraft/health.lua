--- :checkhealth redraft

local M = {}

local function check_neovim()
  if vim.fn.has('nvim-0.12') == 1 then
    vim.health.ok('Neovim 0.12 or newer: suggestions are drawn by Neovim itself')
  elseif vim.fn.has('nvim-0.10') == 1 then
    vim.health.ok('Neovim 0.10 or 0.11: suggestions are drawn by the plugin')
  else
    vim.health.error('Neovim is older than 0.10', 'Install a newer Neovim')
  end
end

---@return boolean
local function check_command()
  local command = require('redraft.server').command()[1]
  local path = vim.fn.exepath(command)
  if path == '' then
    vim.health.error(("the server's command `%s` was not found"):format(command), {
      require('redraft.install').remedy(),
      "Or give its path: require('redraft').setup({ cmd = { '/path/to/redraft', 'serve' } })",
    })
    return false
  end
  local result = vim.system({ path, '--version' }, { text = true }):wait(10000)
  if result.code == 0 then
    vim.health.ok(('%s (%s)'):format(vim.trim(result.stdout), path))
  else
    vim.health.error(('%s --version failed: %s'):format(path, vim.trim(result.stderr or '')))
  end
  return result.code == 0
end

local function check_server()
  local clients = vim.lsp.get_clients({ name = 'redraft' })
  if #clients == 0 then
    vim.health.warn('no server is running', {
      "Open a file, or start it with require('redraft').setup() or vim.lsp.enable('redraft')",
    })
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    vim.health.ok(('server %d serves %d buffer(s), positions in %s'):format(client.id, buffers, client.offset_encoding))
  end
  local status = require('redraft.status')
  if status.last_end then
    vim.health.warn('the server ' .. status.last_end, { 'Look into :Redraft log', 'Run `redraft doctor`' })
  end
  if status.latest then
    local lines = table.concat(status.lines(status.latest), '\n')
    if status.latest.state == 'error' then
      vim.health.error(lines, status.latest.remedy)
    else
      vim.health.info(lines)
    end
  end
end

function M.check()
  vim.health.start('redraft: Neovim')
  check_neovim()
  vim.health.start('redraft: server')
  if check_command() then
    check_server()
  end
end

return M
