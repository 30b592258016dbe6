---@meta

---What `require('redraft').setup()` takes. Settings of the server go into `settings`.
---@class (exact) redraft.Config
---@field cmd string[] the server's command line
---@field root_markers string[] what makes a folder the root of a workspace
---@field settings table<string, any> the server's settings, as in the section `redraft`
---@field server_key string|fun(): string the key of `settings.server.url`, or what gives it; empty: the environment's
---@field own_ghost_text boolean draw suggestions ourselves even where Neovim can
---@field keymaps redraft.Keymaps keys in insert mode; none by default
---@field preview_keymaps redraft.PreviewKeymaps keys in normal mode while an edit is previewed
---@field next_edit_keymaps redraft.NextEditKeymaps keys while a next edit is shown

---@class (exact) redraft.Keymaps
---@field accept? string|false
---@field accept_word? string|false
---@field accept_line? string|false
---@field next? string|false
---@field previous? string|false
---@field trigger? string|false
---@field dismiss? string|false

---@class (exact) redraft.PreviewKeymaps
---@field accept? string|false
---@field discard? string|false
---@field accept_hunk? string|false
---@field discard_hunk? string|false
---@field next_hunk? string|false
---@field previous_hunk? string|false

---@class (exact) redraft.NextEditKeymaps
---@field take? string|false in normal and insert mode
---@field reject? string|false in insert mode
---@field reject_in_normal_mode? string|false

---@alias redraft.Encoding 'utf-8'|'utf-16'|'utf-32'
---@alias redraft.Piece 'all'|'word'|'line'
---@alias redraft.State 'ready'|'loading'|'indexing'|'paused'|'error'|'inactive'

---@class redraft.Position
---@field line integer
---@field character integer

---@class redraft.Range
---@field start redraft.Position
---@field end redraft.Position

---What the server reports about itself and the document asked about.
---@class redraft.Status
---@field state redraft.State
---@field message? string
---@field remedy? string
---@field model? string
---@field editModel? string
---@field modelNotes? string[]
---@field fetching? string which model is fetched, and how far that is
---@field server? { url: string, answers: string, drafted: boolean, reason: string }
---@field workspace? string
---@field index? { files?: integer, tokens?: integer, done?: integer, total?: integer }
---@field promptTokens? integer tokens of the longest prompt of a suggestion
---@field tokensPerForward? number
---@field reason? string

---@class redraft.ServerHunk
---@field range redraft.Range
---@field oldText string
---@field newText string
---@field note? string what the user should look at: that the change is more than was asked for

---@class redraft.EditResult
---@field hunks redraft.ServerHunk[]
---@field version integer
---@field text string
---@field warning? string what the user should know before accepting
---@field statistics { tokens: integer, forwards: integer, seconds: number }

---A hunk in the buffer; its extmark says where it lies now.
---@class (exact) redraft.Hunk
---@field mark integer
---@field old_text string
---@field new_text string
---@field note string
---@field highlight string of what comes

---One edit of one buffer, from the request until everything in it is decided.
---@class (exact) redraft.Edit
---@field bufnr integer
---@field client vim.lsp.Client
---@field instruction string
---@field region integer extmark of the text to rewrite
---@field row integer row in which the region begins
---@field row_of_version table<integer, integer> the same for earlier versions of the buffer
---@field request? integer id of the running request
---@field hunks redraft.Hunk[]
---@field give_keys_back fun()

---A suggestion of our own ghost text.
---@class (exact) redraft.Suggestion
---@field row integer 0-based
---@field col integer byte where the text begins
---@field end_col integer byte up to which it replaces
---@field text string
---@field command? lsp.Command

---What the server proposes after a change. The user is only led to its place where it has no text.
---@class redraft.NextEdit
---@field number integer
---@field textDocument { uri: string, version?: integer }
---@field range redraft.Range
---@field text? string
---@field title string
---@field command lsp.Command

---The server's answer for one text of one buffer, of which the nearest is shown.
---@class (exact) redraft.ShownNextEdits
---@field bufnr integer
---@field client vim.lsp.Client
---@field tick integer changedtick of the text
---@field edits redraft.NextEdit[]
---@field current? redraft.NextEdit
---@field hunk? redraft.Hunk of the current one, where its text is shown
---@field is_asked_for boolean whether the user asked to see the current one
---@field view? string what it was drawn for
---@field drawn_ms integer when it came
---@field give_keys_back fun()
