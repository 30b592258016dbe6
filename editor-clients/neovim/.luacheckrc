std = 'luajit'
read_globals = { 'vim' }
globals = { 'vim.bo', 'vim.g', 'vim.b', 'vim.o', 'vim.wo', 'vim.opt' }
max_line_length = 120
