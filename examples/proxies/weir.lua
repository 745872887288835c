-- Asks weir whether a request may pass. Sets txn.weir_denied, and what weir says about when to come
-- back. A weir that does not answer in time denies nothing, and is left alone for a second.
--
-- By core.tcp and not by core.httpclient: HAProxy 2.6 lets the latter try for seconds.
local host, port = os.getenv("WEIR_ADDRESS"):match("^(.*):(%d+)$")
local timeout = tonumber(os.getenv("WEIR_TIMEOUT") or "0.1")
-- What your rules count by, besides the address.
local names = { "x-api-key", "x-user-id", "x-tier" }
local left_alone_until = 0

local function ask(request)
  local connection = core.tcp()
  connection:settimeout(timeout)
  if not connection:connect(host, tonumber(port)) then
    return nil
  end
  connection:send(request)
  local status = connection:receive("*l")
  local answer = { status = status and tonumber(status:match("^HTTP/1%.1 (%d+)")) }
  while true do
    local line = connection:receive("*l")
    if line == nil or line == "" or line == "\r" then
      break
    end
    local name, value = line:match("^([^:]+):%s*(.-)%s*$")
    if name then
      answer[name:lower()] = value
    end
  end
  connection:close()
  return answer.status and answer or nil
end

core.register_action("weir", { "http-req" }, function(txn)
  local now = core.now().sec
  if now < left_alone_until then
    return
  end
  local headers = txn.http:req_get_headers()
  local request = "GET /v1/auth HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n"
    .. "X-Forwarded-Method: " .. txn.f:method() .. "\r\n"
    .. "X-Forwarded-Uri: " .. txn.f:pathq() .. "\r\n"
    .. "X-Real-IP: " .. txn.f:src() .. "\r\n"
  if headers["host"] then
    request = request .. "X-Forwarded-Host: " .. headers["host"][0] .. "\r\n"
  end
  for _, name in ipairs(names) do
    if headers[name] then
      request = request .. name .. ": " .. headers[name][0] .. "\r\n"
    end
  end
  local ok, answer = pcall(ask, request .. "\r\n")
  if not ok or answer == nil then
    left_alone_until = now + 1
    return
  end
  if answer.status == 429 or answer.status == 403 then
    txn:set_var("txn.weir_denied", true)
    txn:set_var("txn.weir_retry_after", answer["retry-after"] or "1")
    txn:set_var("txn.weir_ratelimit", answer["ratelimit"] or "")
  end
end)
