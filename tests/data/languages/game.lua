-- It's a game (of dice).
local Game = {}
Game.__index = Game

function Game.new(players)
  local self = setmetatable({}, Game)
  self.players = players or {}
  self.scores = { { name = "a", score = 0 }, { name = "b", score = 0 } }
  return self
end

function Game:roll(player)
  if not player then
    return nil
  end
  if not self.players[player] then
    return nil
  end
  for i = 1, 3 do
    if math.random(6) == 6 then
      self.scores[i] = { name = player, score = 6 }
    end
  end
  return [[ it's over ) ]]
end

--[[ A comment (
that is long ]]
function Game:smile()
  return ({ ":)", ":(" })[math.random(2)]
end

return Game
