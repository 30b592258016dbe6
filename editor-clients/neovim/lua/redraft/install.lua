--- The server of the plugin's own: the pinned version in a Python environment, made by :RedraftInstall.

local M = {}

-- The plugin may be a symbolic link into a clone.
local SOURCE = debug.getinfo(1, 'S').source:sub(2)
local PLUGIN = vim.fn.fnamemodify(vim.uv.fs_realpath(SOURCE) or SOURCE, ':p:h:h:h')
local CLONE = vim.fn.fnamemodify(PLUGIN, ':h:h')

--- Nil where the plugin came without a server, as in a clone.
---@return { version: string, protocol: integer }?
local function pinned()
  local file = io.open(PLUGIN .. '/server/server.json')
  if not file then
    return nil
  end
  local told = vim.json.decode(file:read('*a'))
  file:close()
  return told
end

---@return string where environments lie
local function folder()
  return vim.fs.joinpath(vim.fn.stdpath('data') --[[@as string]], 'redraft', 'server')
end

--- An entry of PATH that is relative would run what lies in the folder that is open.
---@param name string
---@return string?
function M.on_path(name)
  local is_windows = vim.fn.has('win32') == 1
  for entry in vim.gsplit(vim.env.PATH or '', is_windows and ';' or ':', { plain = true }) do
    local path = entry .. '/' .. name .. (is_windows and '.exe' or '')
    local is_absolute = entry:match('^/') or entry:match('^%a:[/\\]')
    if is_absolute and vim.fn.executable(path) == 1 then
      return path
    end
  end
end

---@return string? command of the environment; nil where there is none
function M.command()
  local file = io.open(folder() .. '/current.json')
  if not file then
    return nil
  end
  local told = vim.json.decode(file:read('*a'))
  file:close()
  return vim.fn.executable(told.command) == 1 and told.command or nil
end

---@return string[]? what runs the installer: a Python, else uv, which finds one
local function python()
  for _, name in ipairs({ 'python3', 'python' }) do
    local path = M.on_path(name)
    local check = { '-I', '-c', 'import sys; sys.exit(sys.version_info < (3, 10))' }
    if path and vim.system(vim.list_extend({ path }, check), { cwd = folder() }):wait().code == 0 then
      return { path, '-I' }
    end
  end
  local uv = M.on_path('uv')
  return uv and { uv, 'run', '--no-project', '--python', '>=3.11', 'python', '-I' }
end

--- What is said goes into the messages, line by line.
---@param said string[]
---@return fun(err?: string, data?: string)
local function collector(said)
  return function(_, data)
    for line in vim.gsplit(data or '', '\n', { trimempty = true }) do
      said[#said + 1] = line
      if vim.startswith(line, 'redraft: ') then
        vim.schedule(function()
          vim.notify(line)
        end)
      end
    end
  end
end

local function start()
  local server = require('redraft.server')
  if #vim.lsp.get_clients({ name = 'redraft' }) > 0 then
    require('redraft.restart').restart(server.command())
  else
    server.enable()
  end
end

---@return string? what installs the server; nil where the plugin came without one
local function installer()
  local script = pinned() and PLUGIN .. '/server/install.py' or CLONE .. '/editor-clients/server/install.py'
  return vim.fn.filereadable(script) == 1 and script or nil
end

---@return string what helps where there is no server
function M.remedy()
  return installer() and ':RedraftInstall installs it' or '`pip install .` in a clone of Redraft installs it'
end

--- Installs the server, from a file of `install.py download` where there is no network, and starts it.
---@param file? string
function M.install(file)
  local script = installer()
  vim.fn.mkdir(folder(), 'p')
  local command = python()
  if not script then
    vim.notify('redraft: this plugin came without a server; ' .. M.remedy(), vim.log.levels.ERROR)
    return
  elseif not command then
    vim.notify('redraft: Python 3.10 or newer, or uv, has to be on PATH', vim.log.levels.ERROR)
    return
  end
  vim.list_extend(command, { script, 'install', '--folder', folder() })
  vim.list_extend(command, pinned() and {} or { '--project', CLONE })
  vim.list_extend(command, file and { '--from', vim.fn.fnamemodify(file, ':p') } or {})
  local said = {}
  -- What lies in the folder that is open must not lead the installation.
  vim.system(command, { cwd = folder(), stdout = collector(said), stderr = collector(said) }, function(result)
    vim.schedule(function()
      if result.code == 0 then
        vim.notify('redraft: the server is installed, and starts')
        start()
      else
        local last = table.concat(vim.list_slice(said, math.max(1, #said - 20)), '\n')
        vim.notify('redraft: the server could not be installed\n' .. last, vim.log.levels.ERROR)
      end
    end)
  end)
end

---@param version string
---@return integer[]
local function numbers(version)
  return vim.tbl_map(tonumber, vim.split(version:match('^[%d.]*%d') or '0', '.', { plain = true }))
end

---@param one string
---@param other string
---@return boolean
local function is_older(one, other)
  local here, there = numbers(one), numbers(other)
  for index = 1, math.max(#here, #there) do
    local difference = (here[index] or 0) - (there[index] or 0)
    if difference ~= 0 then
      return difference < 0
    end
  end
  return false
end

local has_compared = false

--- Says once when the server that runs is not the one that this plugin is made for.
---@param client vim.lsp.Client
---@param result lsp.InitializeResult
function M.compare(client, result)
  local carried = pinned()
  if not carried or has_compared then
    return
  end
  has_compared = true
  local version = vim.tbl_get(result, 'serverInfo', 'version') or 'unknown'
  local protocol = vim.tbl_get(result, 'capabilities', 'experimental', 'redraft', 'protocol') or 0
  local found = ('redraft: the server `%s` is version %s'):format(client.config.cmd[1], version)
  if protocol > carried.protocol then
    vim.notify(found .. ', which is newer than this plugin can speak to; update the plugin', vim.log.levels.WARN)
  elseif protocol < carried.protocol or is_older(version, carried.version) then
    local wanted = ("; this plugin's is %s, and :RedraftInstall installs it"):format(carried.version)
    vim.notify(found .. wanted, vim.log.levels.WARN)
  end
end

return M
