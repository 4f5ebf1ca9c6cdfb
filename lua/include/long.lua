--- A queue with records of more bytes says so in its config: reserve looks at their sizes first.
local LONG = 4096
