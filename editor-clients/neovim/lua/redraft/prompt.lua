--- A small window that asks for an instruction, with the earlier ones on the arrow keys.

local M = {}

local HISTORY_LENGTH = 30

---@return string
local function history_file()
  return vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'redraft-instructions.json')
end

---@return string[] newest first
function M.history()
  local file = io.open(history_file(), 'r')
  if not file then
    return {}
  end
  local ok, entries = pcall(vim.json.decode, file:read('*a'))
  file:close()
  return ok and type(entries) == 'table' and entries or {}
end

---@param instruction string
local function remember(instruction)
  local entries = { instruction }
  for _, former in ipairs(M.history()) do
    if former ~= instruction and #entries < HISTORY_LENGTH then
      entries[#entries + 1] = former
    end
  end
  vim.fn.mkdir(vim.fn.stdpath('state') --[[@as string]], 'p')
  local file = io.open(history_file(), 'w')
  if file then
    file:write(vim.json.encode(entries))
    file:close()
  end
end

--- Asks below the cursor; Enter answers, Escape in normal mode or CTRL-C leaves without an answer.
---@param title string
---@param answered fun(instruction: string)
function M.ask(title, answered)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].buftype = 'prompt'
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.fn.prompt_setprompt(bufnr, '> ')
  local width = math.min(72, math.max(20, vim.o.columns - 4))
  local window = vim.api.nvim_open_win(bufnr, true, {
    relative = 'cursor',
    row = 1,
    col = 0,
    width = width,
    height = 1,
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. title .. ' ',
  })
  local function close()
    vim.cmd.stopinsert()
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
  vim.fn.prompt_setcallback(bufnr, function(typed)
    close()
    local instruction = vim.trim(typed)
    if instruction ~= '' then
      remember(instruction)
      answered(instruction)
    end
  end)
  local entries, shown = M.history(), 0
  local function browse(step)
    shown = math.max(0, math.min(#entries, shown + step))
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { '> ' .. (entries[shown] or '') })
    vim.cmd('startinsert!')
  end
  local function map(mode, key, action)
    vim.keymap.set(mode, key, action, { buffer = bufnr, nowait = true })
  end
  map('i', '<Up>', function()
    browse(1)
  end)
  map('i', '<Down>', function()
    browse(-1)
  end)
  map({ 'i', 'n' }, '<C-c>', close)
  map('n', '<Esc>', close)
  vim.cmd.startinsert()
end

return M
