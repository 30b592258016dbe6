--- Choosing the model for all editors that name none.

local client = require('redraft.client')

local M = {}

---@param model table one that can be fetched
---@return string
local function size_of(model)
  local bytes = model.fetched_bytes or model.bytes
  return bytes > 0 and ('%.0f MB'):format(bytes / 1e6) or 'what the hub says'
end

---@param model table as `redraft models --json` describes it
---@return string
local function line_of(model)
  if not model.family then
    return model.name .. (model.recommended and ' (recommended)' or '')
  end
  local parts = model.bytes and { ('fetch %s'):format(size_of(model)) } or {}
  if model.family ~= '' then
    parts[#parts + 1] = model.family
  end
  if model.bits > 0 then
    parts[#parts + 1] = ('%g bits'):format(model.bits)
  end
  if type(model.tokens_per_s) == 'number' then
    parts[#parts + 1] = ('%.0f tokens/s'):format(model.tokens_per_s)
  end
  if model.licence ~= '' then
    parts[#parts + 1] = model.licence
  end
  if model.purpose and model.purpose ~= '' then
    parts[#parts + 1] = 'for ' .. model.purpose
  end
  if not model.fits then
    parts[#parts + 1] = 'too large for the memory that is free'
  end
  local mark = model.recommended and ', recommended' or ''
  return ('%s (%s%s)'):format(model.name, table.concat(parts, ', '), mark)
end

--- What can be chosen: models that are here, models that can be fetched; the
--- recommended one first.
---@param found table what `redraft/models` answers
---@return table[]
local function choices(found)
  local models = vim.tbl_filter(function(model)
    return model.problem == ''
  end, found.models)
  vim.list_extend(models, found.offered or {})
  local best = found.recommended and found.recommended.name or ''
  for place, model in ipairs(models) do
    if model.name == best then
      model.recommended = true
      table.insert(models, 1, table.remove(models, place))
      break
    end
  end
  return models
end

--- Asks, then fetches a model in a terminal, where one sees how far it is.
---@param model table
local function fetch(model)
  local terms = model.terms and model.terms ~= '' and ': ' .. model.terms or ''
  local question = ('Fetch %s (%s, licence %s%s)?'):format(model.name, size_of(model), model.licence, terms)
  if vim.fn.confirm(question, '&Yes\n&No', 2) ~= 1 then
    return
  end
  local command = { require('redraft.config').options.cmd[1], 'models', 'get', model.name }
  vim.cmd('botright 12new')
  local options = {
    on_exit = function(_, code)
      if code == 0 then
        vim.schedule(M.choose)
      end
    end,
  }
  if vim.fn.has('nvim-0.11') == 1 then
    vim.fn.jobstart(command, vim.tbl_extend('error', options, { term = true }))
  else
    vim.fn.termopen(command, options)
  end
end

---@param owner vim.lsp.Client
---@param path string
local function use(owner, path)
  client.execute(owner, 'redraft.useModel', { { path = path } }, function(_, result)
    if result and result.path ~= path then
      vim.notify('redraft: your configuration names another model, which goes before: ' .. result.path)
    end
  end)
end

--- Asks which of the models on this machine shall run.
function M.choose()
  local owner = client.required()
  if not owner then
    return
  end
  client.request(owner, 'redraft/models', {}, function(err, found)
    if err then
      vim.notify('redraft: ' .. err.message, vim.log.levels.ERROR)
      return
    end
    vim.ui.select(choices(found), {
      prompt = 'Redraft: which model shall run?',
      format_item = line_of,
    }, function(chosen)
      if chosen and chosen.bytes then
        fetch(chosen)
      elseif chosen then
        use(owner, chosen.paths[1])
      end
    end)
  end)
end

return M
