-- The entries of a list, as Apptainer reads them (pkg/util/bind). A comma behind a backslash is part of a bind's path.
-- Options belong to the bind before them, if it has a target.
local function entries(text, between)
   local paths = {}
   for raw in (text .. between):gmatch("([^" .. between .. "]*)" .. between) do
      local word = raw:match("^%s*(.-)%s*$")
      local last = between == "," and paths[#paths] or ""
      local is_option = word == "ro" or word == "rw" or word:find("^id=") or word:find("^image[-]src=")
      if last:find("\\$") then
         paths[#paths] = last .. "," .. raw
      elseif is_option and last:find("[^\\]:") then
         paths[#paths] = last .. "," .. word
      elseif word ~= "" then
         paths[#paths + 1] = word
      end
   end
   return paths
end

-- Text that a list has once: an entry, or the target of a bind. A colon behind a backslash is part of a path.
local function target(entry, between)
   if between ~= "," then return entry end
   local plain = entry:gsub("\\:", "\n")
   return ((plain:match("^[^:]*:([^:]*)") or plain):gsub("\n", ":"))
end
