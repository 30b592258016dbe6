--- How Neovim starts and talks to the server; lsp/redraft.lua is made of this.

local config = require('redraft.config')

local M = {}

---@return lsp.ClientCapabilities
local function capabilities()
  local all = vim.lsp.protocol.make_client_capabilities()
  -- Neovim before 0.12 does not know the feature, which we then draw ourselves.
  all.textDocument.inlineCompletion = all.textDocument.inlineCompletion or { dynamicRegistration = false }
  return all
end

--- Tells the server where the cursor is, so that it reads the text there before the first key.
---@param bufnr integer
local function show_cursor(bufnr)
  local client = require('redraft.client')
  local owner = client.of_buffer(bufnr)
  if not owner or bufnr ~= vim.api.nvim_get_current_buf() then
    return
  end
  client.notify(owner, 'redraft/cursor', vim.lsp.util.make_position_params(0, owner.offset_encoding))
end

--- What the server's process finds in its environment: the key goes in no message, which may be logged.
---@return table<string, string>?
local function environment()
  local key = config.options.server_key
  if type(key) == 'function' then
    key = key()
  end
  return key and key ~= '' and { REDRAFT_SERVER_KEY = vim.trim(key) } or nil
end

--- The command that the user named, else that of the plugin's own environment, else the one on PATH.
---@return string[]
function M.command()
  local named = config.options.cmd
  local own = vim.deep_equal(named, config.default('cmd')) and require('redraft.install').command()
  return own and { own, 'serve' } or named
end

--- The configuration for vim.lsp.config(), vim.lsp.start() or lsp/redraft.lua.
---@return vim.lsp.ClientConfig
function M.config()
  local options = config.options
  -- An empty Lua table would be sent as a list.
  local settings = next(options.settings) and options.settings or vim.empty_dict()
  return {
    name = 'redraft',
    cmd = M.command(),
    cmd_env = environment(),
    root_markers = options.root_markers,
    capabilities = capabilities(),
    init_options = { redraft = { editCommand = true, chooseModel = true }, settings = settings },
    settings = { redraft = settings },
    commands = {
      ['redraft.editWithInstruction'] = function(command, context)
        require('redraft.edit').from_code_action(command, context)
      end,
    },
    handlers = {
      ['redraft/status'] = function(_, status)
        require('redraft.status').changed(status)
      end,
      ['redraft/chooseModel'] = function()
        require('redraft.model').choose()
      end,
      ['redraft/nextEditsChanged'] = function(_, changed)
        require('redraft.next_edits').more(changed.uri)
      end,
      ['redraft/editProgress'] = function(_, progress)
        require('redraft.edit').streamed(progress)
      end,
    },
    on_init = function(client, result)
      require('redraft.install').compare(client, result)
    end,
    on_attach = function(client, bufnr)
      require('redraft.restart').attached(client, bufnr)
      require('redraft.inline').attach(bufnr)
      require('redraft.next_edits').attach(bufnr)
      -- What opens a file may put the cursor back where it was.
      vim.schedule(function()
        show_cursor(bufnr)
      end)
    end,
    on_exit = function(code, signal)
      require('redraft.restart').exited(code, signal)
    end,
  }
end

--- Attaches the server to buffers that hold files, on Neovim before 0.11, which has no vim.lsp.enable().
local function enable_by_autocmd()
  local function start(bufnr)
    if vim.bo[bufnr].buftype ~= '' or vim.api.nvim_buf_get_name(bufnr) == '' then
      return
    end
    local settings = M.config()
    settings.root_dir = vim.fs.root(bufnr, config.options.root_markers)
    vim.lsp.start(settings, { bufnr = bufnr })
  end
  vim.api.nvim_create_autocmd('FileType', {
    group = vim.api.nvim_create_augroup('redraft.enable', { clear = true }),
    callback = function(event)
      start(event.buf)
    end,
  })
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].filetype ~= '' then
      start(bufnr)
    end
  end
end

--- Starts the server for all files, those that are open, too.
function M.enable()
  local command = M.command()[1]
  if vim.fn.executable(command) == 0 then
    local remedy = require('redraft.install').remedy()
    vim.notify(('redraft: the server `%s` was not found; %s'):format(command, remedy), vim.log.levels.WARN)
  end
  if vim.lsp.enable then
    vim.lsp.config('redraft', M.config())
    vim.lsp.enable('redraft')
  else
    enable_by_autocmd()
  end
end

return M
