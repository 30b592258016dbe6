--- Choosing the model for all editors that name none.

local client = require('redraft.client')

local M = {}

---@param model table as `redraft models --json` describes it
---@return string
local function line_of(model)
  local parts = { model.family, ('%g bits'):format(model.bits) }
  if type(model.tokens_per_s) == 'number' then
    parts[#parts + 1] = ('%.0f tokens/s'):format(model.tokens_per_s)
  end
  if model.licence ~= '' then
    parts[#parts + 1] = model.licence
  end
  if not model.fits then
    parts[#parts + 1] = 'too large for the memory that is free'
  end
  return ('%s (%s)'):format(model.name, table.concat(parts, ', '))
end

---@param owner vim.lsp.Client
---@param path string empty for the embedded model
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
    local models = vim.tbl_filter(function(model)
      return model.problem == ''
    end, found.models)
    table.insert(models, { name = 'the embedded model', paths = { '' } })
    vim.ui.select(models, {
      prompt = 'Redraft: which model shall run?',
      format_item = function(model)
        return model.family and line_of(model) or model.name
      end,
    }, function(chosen)
      if chosen then
        use(owner, chosen.paths[1])
      end
    end)
  end)
end

return M
