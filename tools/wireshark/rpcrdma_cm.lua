-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark dissectors of RPC-over-RDMA, beside Wireshark's own of version 1:
--   rpcrdma_cm  the CM Private Data of RFC 8797, in REQ and REP of the InfiniBand CM and in the
--               Request and Reply Frames of MPA (RFC 5044, RFC 6581)
--   rpcrdma2    the transport headers of version 2 (draft-cel-nfsv4-rpcrdma-version-two-01)
-- All rules are taken from these texts and from RFC 8166.
--
-- Expert severities: Error if a MUST of these texts is broken or a message cannot be decoded,
-- Warning if a receiver has to reject something, Note if something unusual is allowed.

local cm = Proto("rpcrdma_cm", "RPC-over-RDMA CM Private Data")
local v2 = Proto("rpcrdma2", "RPC-over-RDMA Version 2")

-- RFC 8797, section 4.
local IDENTIFIER = "\xf6\xab\x0e\x18"
local LENGTH = 8
local VERSION = 1
-- RFC 8797, section 4.2; also the default of both sizes.
local UNIT = 1024
-- The draft, section 2.3.
local VERSION_TWO_THRESHOLD = 4096
-- Only this number is shown, and the rest is counted, so that no message makes a tree without
-- limit.
local CANDIDATES_SHOWN = 32
-- Segments and Write and Reply chunks, together: a chunk can be empty.
local SEGMENTS_SHOWN = 512

-- CM attributes, and opcodes of the Base Transport Header and of RDMAP.
local REQ, REP = 0x0010, 0x0013
local SEND_ONLY = { [0x04] = true, [0x05] = true, [0x17] = true }
local SEND_LAST = { [0x02] = true, [0x03] = true, [0x16] = true }
local SEND_FIRST, SEND_MIDDLE = 0x00, 0x01
local SEND_INVALIDATES = { [0x16] = true, [0x17] = true }
local RDMAP_SEND = { [3] = true, [4] = true, [5] = true, [6] = true }

-- Fields of Wireshark's own dissectors.
local see = {
	opcode = Field.new("infiniband.bth.opcode"),
	queue_pair = Field.new("infiniband.bth.destqp"),
	psn = Field.new("infiniband.bth.psn"),
	pad = Field.new("infiniband.bth.padcnt"),
	bth = Field.new("infiniband.bth"),
	immediate = Field.new("infiniband.immdt"),
	ieth = Field.new("infiniband.ieth"),
	crc = Field.new("infiniband.invariant.crc"),
	attribute = Field.new("infiniband.mad.attributeid"),
	req_comm = Field.new("infiniband.cm.req"),
	req_queue_pair = Field.new("infiniband.cm.req.localqpn"),
	rep_comm = Field.new("infiniband.cm.rep.remotecommid"),
	rep_queue_pair = Field.new("infiniband.cm.rep.localqpn"),
	stream = Field.new("tcp.stream"),
	mpa_request = Field.new("iwarp_mpa.key.req"),
	mpa_reply = Field.new("iwarp_mpa.key.rep"),
	mpa_rejected = Field.new("iwarp_mpa.rej_flag"),
	mpa_reserved = Field.new("iwarp_mpa.res"),
	mpa_revision = Field.new("iwarp_mpa.rev"),
	mpa_length = Field.new("iwarp_mpa.pdlength"),
	mpa_private = Field.new("iwarp_mpa.privatedata"),
	ulpdu_length = Field.new("iwarp_mpa.ulpdulength"),
	ddp = Field.new("iwarp_ddp"),
	ddp_tagged = Field.new("iwarp_ddp.tagged_flag"),
	ddp_last = Field.new("iwarp_ddp.last_flag"),
	ddp_message = Field.new("iwarp_ddp.msn"),
	ddp_offset = Field.new("iwarp_ddp.mo"),
	rdmap = Field.new("iwarp_rdma.opcode"),
	steering_tag = Field.new("iwarp_rdma.inval_stag"),
	one_xid = Field.new("rpcordma.xid"),
	one_handle = Field.new("rpcordma.rdma_handle"),
}

-- last(extract): the value of a field's last occurrence so far, which is in the header that is
-- being dissected.
local function last(extract)
	local found = { extract() }
	local info = found[#found]
	return info and info.value
end

local directions = { [0] = "CALL", [1] = "REPLY" }
local procedures = {
	[0] = "RDMA2_MSG", [1] = "RDMA2_NOMSG", [4] = "RDMA2_ERROR", [5] = "RDMA2_OPTIONAL",
}
local errors = {
	[1] = "RDMA2_ERR_VERS", [2] = "RDMA2_ERR_BAD_HEADER", [3] = "RDMA2_ERR_INVALID_OPTION",
}

local f = {
	role = ProtoField.string("rpcrdma_cm.role", "Sender"),
	status = ProtoField.string("rpcrdma_cm.status", "Private data"),
	length = ProtoField.uint32("rpcrdma_cm.length", "Octets searched"),
	octets = ProtoField.bytes("rpcrdma_cm.octets", "Octets"),
	enhanced = ProtoField.bytes("rpcrdma_cm.enhanced",
		"Enhanced RDMA connection establishment data (RFC 6581)"),
	offset = ProtoField.uint32("rpcrdma_cm.offset", "Offset"),
	rejected = ProtoField.string("rpcrdma_cm.rejected", "Rejected"),
	rejected_offset = ProtoField.uint32("rpcrdma_cm.rejected.offset", "Offset"),
	rejected_version = ProtoField.uint8("rpcrdma_cm.rejected.version", "Version"),
	identifier = ProtoField.uint32("rpcrdma_cm.identifier", "Format Identifier", base.HEX),
	version = ProtoField.uint8("rpcrdma_cm.version", "Version"),
	reserved = ProtoField.uint8("rpcrdma_cm.reserved", "Reserved", base.HEX, nil, 0xfe),
	r = ProtoField.bool("rpcrdma_cm.r", "R: supports remote invalidation", 8, nil, 0x01),
	send = ProtoField.uint8("rpcrdma_cm.send_size", "Send Size"),
	send_octets = ProtoField.uint32("rpcrdma_cm.send_octets", "Sends at most, in octets"),
	receive = ProtoField.uint8("rpcrdma_cm.receive_size", "Receive Size"),
	receive_octets = ProtoField.uint32("rpcrdma_cm.receive_octets",
		"Receives at most, in octets"),
	trailing = ProtoField.uint32("rpcrdma_cm.trailing", "Octets behind the message"),
	c2s = ProtoField.uint32("rpcrdma_cm.client_to_server_threshold",
		"Client-to-server inline threshold"),
	s2c = ProtoField.uint32("rpcrdma_cm.server_to_client_threshold",
		"Server-to-client inline threshold"),
	invalidation = ProtoField.bool("rpcrdma_cm.remote_invalidation",
		"Replies may use remote invalidation"),
	request_in = ProtoField.framenum("rpcrdma_cm.request_in", "Connection requested in"),
}
cm.fields = f

local g = {
	xid = ProtoField.uint32("rpcrdma2.xid", "XID", base.HEX),
	vers = ProtoField.uint32("rpcrdma2.version", "Version"),
	credit = ProtoField.uint32("rpcrdma2.credit", "Credit Value"),
	proc = ProtoField.uint32("rpcrdma2.proc", "Procedure", base.DEC, procedures),
	direction = ProtoField.uint32("rpcrdma2.direction", "Direction", base.DEC, directions),
	from = ProtoField.string("rpcrdma2.from", "Sender"),
	reverse = ProtoField.bool("rpcrdma2.reverse", "Reverse direction"),
	reads = ProtoField.uint32("rpcrdma2.reads", "Read list, segments"),
	writes = ProtoField.uint32("rpcrdma2.writes", "Write list, chunks"),
	reply = ProtoField.bool("rpcrdma2.reply", "Reply chunk"),
	segments = ProtoField.uint32("rpcrdma2.segments", "Segments"),
	position = ProtoField.uint32("rpcrdma2.position", "Position"),
	handle = ProtoField.uint32("rpcrdma2.handle", "Handle", base.HEX),
	length = ProtoField.uint32("rpcrdma2.length", "Length"),
	offset = ProtoField.uint64("rpcrdma2.offset", "Offset", base.HEX),
	err = ProtoField.uint32("rpcrdma2.err", "Error", base.DEC, errors),
	low = ProtoField.uint32("rpcrdma2.vers_low", "Lowest version"),
	high = ProtoField.uint32("rpcrdma2.vers_high", "Highest version"),
	opttype = ProtoField.uint32("rpcrdma2.opttype", "Option type"),
	optlen = ProtoField.uint32("rpcrdma2.optinfo.length", "Option length"),
	optinfo = ProtoField.bytes("rpcrdma2.optinfo", "Option"),
	payload = ProtoField.uint32("rpcrdma2.payload_length", "RPC message, octets"),
	request_in = ProtoField.framenum("rpcrdma2.request_in", "Connection requested in"),
}
v2.fields = g

local function expert_of(proto, name, text, group, severity)
	return ProtoExpert.new(proto .. "." .. name, text, expert.group[group],
		expert.severity[severity])
end
local cm_experts = {
	reserved = expert_of("rpcrdma_cm", "reserved_set", "Reserved bits are set", "PROTOCOL", "ERROR"),
	rejected = expert_of("rpcrdma_cm", "candidate_rejected", "Candidate rejected", "PROTOCOL",
		"WARN"),
	shifted = expert_of("rpcrdma_cm", "shifted", "Not the first eight octets", "PROTOCOL", "NOTE"),
	trailing = expert_of("rpcrdma_cm", "more_octets", "Octets follow", "PROTOCOL", "NOTE"),
	again = expert_of("rpcrdma_cm", "another", "Another Format Identifier", "PROTOCOL", "NOTE"),
	enhanced = expert_of("rpcrdma_cm", "enhanced_missing", "No room for IRD and ORD", "MALFORMED",
		"ERROR"),
	foreign = expert_of("rpcrdma_cm", "foreign_tag", "Steering Tag of another call", "PROTOCOL",
		"ERROR"),
	invalidates = expert_of("rpcrdma_cm", "invalidates", "Remote invalidation not agreed",
		"PROTOCOL", "ERROR"),
	long = expert_of("rpcrdma_cm", "too_long", "Exceeds the inline threshold", "PROTOCOL", "ERROR"),
}
cm.experts = cm_experts
local v2_experts = {
	malformed = expert_of("rpcrdma2", "malformed", "Malformed header", "MALFORMED", "ERROR"),
	violation = expert_of("rpcrdma2", "violation", "Against the draft or RFC 8166", "PROTOCOL",
		"ERROR"),
	note = expert_of("rpcrdma2", "note", "Unusual", "PROTOCOL", "NOTE"),
}
v2.experts = v2_experts

local rpc = Dissector.get("rpc")

-- The state of the capture, learned on the first pass, in the order of its packets. The capture
-- bounds its size: a packet adds at most one entry to each table, and at most its own octets.
local frames, by_comm, by_end, by_stream, partial

-- Wireshark calls this before the first packet of a capture, and when it dissects the capture
-- again.
function cm.init()
	frames, by_comm, by_end, by_stream, partial = {}, {}, {}, {}, {}
end

-- frame_of(pinfo): returns the state of a packet, and whether this is the first pass over it.
local function frame_of(pinfo)
	local frame = frames[pinfo.number]
	if frame then return frame, not pinfo.visited end
	frame = { violations = {}, given = {}, sends = {} }
	frames[pinfo.number] = frame
	return frame, true
end

-- search(raw): returns the first valid message in these octets, and the candidates in front of it.
local function search(raw)
	local offer = { status = "absent", rejected = {}, send = UNIT, receive = UNIT, r = false }
	local from = 1
	while true do
		local at = raw:find(IDENTIFIER, from, true)
		if not at then break end
		local room = #raw - at + 1
		local version = room > 4 and raw:byte(at + 4) or nil
		local reason
		if room < LENGTH then
			reason = ("truncated, %d of %d octets"):format(room, LENGTH)
		elseif version ~= VERSION then
			reason = ("version %d is not %d"):format(version, VERSION)
		else
			offer.status, offer.at = "present", at - 1
			offer.flags = raw:byte(at + 5)
			offer.r = offer.flags & 1 == 1
			-- RFC 8797, section 4.2.
			offer.send = (raw:byte(at + 6) + 1) * UNIT
			offer.receive = (raw:byte(at + 7) + 1) * UNIT
			offer.another = raw:find(IDENTIFIER, at + LENGTH, true)
			break
		end
		offer.status = "rejected"
		if #offer.rejected < CANDIDATES_SHOWN then
			table.insert(offer.rejected, { at = at - 1, version = version, reason = reason })
		else
			offer.more = (offer.more or 0) + 1
		end
		from = at + 1
	end
	return offer
end

-- negotiate(conn): returns both thresholds, and whether remote invalidation is allowed (RFC 8797,
-- sections 4.1 and 4.2).
local function negotiate(conn)
	local client, server = conn.client, conn.server
	return math.min(client.send, server.receive), math.min(server.send, client.receive),
		client.r and server.r
end

-- speaks(conn): whether the connection is one of RPC-over-RDMA: one side has sent a Format
-- Identifier.
local function speaks(conn)
	return conn ~= nil and ((conn.client ~= nil and conn.client.status ~= "absent") or
		(conn.server ~= nil and conn.server.status ~= "absent"))
end

local function generated(tree, field, value)
	local item = tree:add(field, value)
	item:set_generated()
	return item
end

-- show_private(...): shows the LENGTH octets of TVB from BEGIN on, which were searched. PADDED: the
-- lower layer pads private data with zeros.
local function show_private(tvb, begin, length, pinfo, tree, role, conn, offer, padded)
	local root = length > 0 and tree:add(cm, tvb(begin, length)) or tree:add(cm)
	root:append_text((", from the %s: %s"):format(role, offer.status))
	generated(root, f.role, role)
	generated(root, f.status, offer.status)
	generated(root, f.length, length)
	if length > 0 then root:add(f.octets, tvb(begin, length)) end
	for _, candidate in ipairs(offer.rejected) do
		local at = begin + candidate.at
		local size = math.min(LENGTH, length - candidate.at)
		local item = root:add(f.rejected, tvb(at, size), candidate.reason)
		generated(item, f.rejected_offset, candidate.at)
		if candidate.version then
			item:add(f.rejected_version, tvb(at + 4, 1))
		end
		item:add_proto_expert_info(cm_experts.rejected,
			("Rejected at offset %d: %s (RFC 8797, section 5.2)"):format(candidate.at,
				candidate.reason))
	end
	if offer.more then
		root:add_proto_expert_info(cm_experts.rejected,
			("Rejected %d more, which are not shown"):format(offer.more))
	end
	if offer.at then
		local at = begin + offer.at
		local where = generated(root, f.offset, offer.at)
		if offer.at > 0 then
			where:add_proto_expert_info(cm_experts.shifted,
				"Not in the first eight octets (RFC 8797, section 4), found by searching " ..
				"(section 5.2)")
		end
		root:add(f.identifier, tvb(at, 4))
		root:add(f.version, tvb(at + 4, 1))
		local reserved = root:add(f.reserved, tvb(at + 5, 1))
		if offer.flags & 0xfe ~= 0 then
			reserved:add_proto_expert_info(cm_experts.reserved,
				"Reserved bits are set; senders MUST set them to zero, receivers ignore " ..
				"them (RFC 8797, section 4)")
		end
		root:add(f.r, tvb(at + 5, 1))
		local size = root:add(f.send, tvb(at + 6, 1))
		generated(size, f.send_octets, offer.send)
		size = root:add(f.receive, tvb(at + 7, 1))
		generated(size, f.receive_octets, offer.receive)
		local behind = length - offer.at - LENGTH
		if behind > 0 and
			not (padded and not tvb:raw(at + LENGTH, behind):find("[^%z]")) then
			generated(root, f.trailing, behind):add_proto_expert_info(cm_experts.trailing,
				"Version 1 says that exactly eight octets are present (RFC 8797, section 4)")
		end
		if offer.another then
			root:add_proto_expert_info(cm_experts.again,
				("Another Format Identifier at offset %d counts for nothing: the first " ..
				"valid message does"):format(offer.another - 1))
		end
		pinfo.cols.info:append((" [RPC-over-RDMA: send %d, receive %d%s]"):format(offer.send,
			offer.receive, offer.r and ", R" or ""))
	else
		pinfo.cols.info:append((" [RPC-over-RDMA: private data %s]"):format(offer.status))
	end
	if conn and role == "server" and conn.client then
		local c2s, s2c, invalidation = negotiate({ client = conn.client, server = offer })
		generated(root, f.request_in, conn.request)
		generated(root, f.c2s, c2s)
		generated(root, f.s2c, s2c)
		generated(root, f.invalidation, invalidation)
	end
end

-- The addresses of RoCE are IP addresses.
local function comm_key(address, comm) return ("%s/%d"):format(tostring(address), comm) end

-- learn_ib(...): notes the offer of a REQ or a REP. Returns the connection, if it is known.
local function learn_ib(pinfo, role, offer, raw)
	if role == "client" then
		local comm, queue_pair = last(see.req_comm), last(see.req_queue_pair)
		if not comm or not queue_pair then return nil end
		local key = comm_key(pinfo.net_src, comm)
		local known = by_comm[key]
		-- The CM retransmits a REQ unchanged.
		if known and known.queue_pair == queue_pair and known.raw == raw then return known end
		local conn = { request = pinfo.number, client = offer, queue_pair = queue_pair, raw = raw }
		by_comm[key] = conn
		by_end[comm_key(pinfo.net_src, queue_pair)] = { conn = conn, to = "client" }
		return conn
	end
	local comm, queue_pair = last(see.rep_comm), last(see.rep_queue_pair)
	if not comm or not queue_pair then return nil end
	local conn = by_comm[comm_key(pinfo.net_dst, comm)]
	if conn then
		conn.server = offer
		by_end[comm_key(pinfo.net_src, queue_pair)] = { conn = conn, to = "server" }
	end
	return conn
end

local function cm_private(tvb, pinfo, tree)
	local roles = { [REQ] = "client", [REP] = "server" }
	-- RFC 8797, section 4: the message is in a client's request and in a server's acceptance.
	local role = roles[last(see.attribute)]
	if not role then return false end
	local length = tvb:len()
	-- Without all octets, no message may be missed or cut short.
	if length < tvb:reported_len() then return false end
	local raw = length > 0 and tvb:raw(0, length) or ""
	local frame, first = frame_of(pinfo)
	if first then
		frame.offer = search(raw)
		frame.conn = learn_ib(pinfo, role, frame.offer, raw)
	end
	if frame.offer.status == "absent" and not speaks(frame.conn) then return false end
	show_private(tvb, 0, length, pinfo, tree, role, frame.conn, frame.offer, true)
	return true
end

-- mpa_private(pinfo, tree): shows the private data of MPA, for which Wireshark has no heuristics.
local function mpa_private(pinfo, tree)
	local role = see.mpa_request() and "client" or see.mpa_reply() and "server"
	if not role then return end
	-- A rejection sets up no connection.
	if role == "server" and last(see.mpa_rejected) then return end
	local stream = last(see.stream)
	local info = see.mpa_private()
	-- The private data was not captured as a whole.
	if not info and (last(see.mpa_length) or 0) > 0 then return end
	local tvb = info and info.source
	local begin, length = 0, 0
	if info then begin, length = info.offset, info.len end
	-- RFC 6581, section 9: the flag S, which is one of MPA's reserved bits in Wireshark.
	local enhanced = (last(see.mpa_revision) or 0) >= 2 and (last(see.mpa_reserved) or 0) & 0x10 ~= 0
	local layer = enhanced and math.min(4, length) or 0
	begin, length = begin + layer, length - layer
	local frame, first = frame_of(pinfo)
	if first then
		frame.offer = search(length > 0 and tvb:raw(begin, length) or "")
		if stream and role == "client" then
			by_stream[stream] = {
				request = pinfo.number, client = frame.offer, port = pinfo.src_port,
			}
		elseif stream and by_stream[stream] then
			by_stream[stream].server = frame.offer
		end
		frame.conn = stream and by_stream[stream]
	end
	if frame.offer.status == "absent" and not speaks(frame.conn) then return end
	if layer > 0 then
		local item = tree:add(f.enhanced, tvb(begin - layer, layer))
		if layer < 4 then
			item:add_proto_expert_info(cm_experts.enhanced,
				"The flag S says that IRD and ORD begin the private data (RFC 6581, section 9)")
		end
	end
	show_private(tvb, begin, length, pinfo, tree, role, frame.conn, frame.offer, false)
end

-- looks_like_v2(tvb, known): KNOWN says that the connection is one of RPC-over-RDMA.
local function looks_like_v2(tvb, known)
	if tvb:len() < 16 then return known and tvb:len() >= 8 and tvb(4, 4):uint() == 2 end
	return tvb(4, 4):uint() == 2 and (known or procedures[tvb(12, 4):uint()] ~= nil)
end

-- A reader of XDR over a tvb. It reports once that the octets end too early.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb, tree)
	return setmetatable({
		tvb = tvb, tree = tree, at = 0, length = tvb:len(), shown = 0, hidden = 0, handles = {},
	}, Reader)
end

function Reader:left() return self.length - self.at end

function Reader:bad(text) self.tree:add_proto_expert_info(v2_experts.malformed, text) end

-- has(octets, name): whether that number of octets is left.
function Reader:has(octets, name)
	if self:left() >= octets then return true end
	self:bad(("The message ends within %s: %d octets, at least %d needed"):format(name, self:left(),
		octets))
	return false
end

-- word(name): returns the next 32 bits and their range, or nil.
function Reader:word(name)
	if not self:has(4, name) then return nil end
	local range = self.tvb(self.at, 4)
	self.at = self.at + 4
	return range:uint(), range
end

-- add(field, name, tree): shows and returns the next 32 bits, or returns nil.
function Reader:add(field, name, tree)
	local value, range = self:word(name)
	if not value then return nil end
	return value, (tree or self.tree):add(field, range)
end

-- present(name): returns XDR's optional-data (RFC 4506, section 4.19), or nil if it is invalid.
function Reader:present(name)
	local value = self:word(name)
	if not value then return nil end
	if value > 1 then
		self:bad(("%s is neither present (1) nor absent (0): %d"):format(name, value))
		return nil
	end
	return value == 1
end

-- shows(): whether one more segment or chunk is shown. Counts it.
function Reader:shows()
	local room = self.shown < SEGMENTS_SHOWN
	if room then self.shown = self.shown + 1 else self.hidden = self.hidden + 1 end
	return room
end

-- segment(tree, with_position): shows a segment. Its octets must be there. Returns its Position.
function Reader:segment(tree, with_position)
	local at = self.at
	local position
	if with_position then
		position = self.tvb(at, 4):uint()
		at = at + 4
	end
	self.at = at + 16
	self.handles[self.tvb(at, 4):uint()] = true
	if not self:shows() then return position end
	local item = tree
	if position then
		item = tree:add(g.position, self.tvb(at - 4, 4))
		if position % 4 ~= 0 then
			item:add_proto_expert_info(v2_experts.violation,
				"A Position MUST be a multiple of four (RFC 8166, section 3.4.5)")
		end
	end
	item:add(g.handle, self.tvb(at, 4))
	item:add(g.length, self.tvb(at + 4, 4))
	item:add(g.offset, self.tvb(at + 8, 8))
	return position
end

-- write_chunk(tree, name): shows a chunk, and returns whether it could be decoded.
function Reader:write_chunk(tree, name)
	if not self:has(4, name) then return false end
	local count = self.tvb(self.at, 4):uint()
	local item = self:shows() and tree:add(g.segments, self.tvb(self.at, 4)) or tree
	self.at = self.at + 4
	-- The comparison divides, because a large count would overflow a product.
	if count > self:left() // 16 then
		self:bad(("%s has %d segments, of which %d fit"):format(name, count, self:left() // 16))
		return false
	end
	for _ = 1, count do self:segment(item, false) end
	return true
end

-- chunk_lists(): returns the number of reads and writes, whether there is a Reply chunk, a Position
-- Zero Read chunk (zero), a Read chunk at another Position (reduced); or nil if it cannot be
-- decoded.
function Reader:chunk_lists()
	local lists = { reads = 0, writes = 0, reply = false, zero = false, reduced = false }
	local begin = self.at
	local tree = self.tree:add(self.tvb(begin, 0), "Read list")
	while true do
		local more = self:present("the Read list")
		if more == nil then return nil end
		if not more then break end
		if not self:has(20, "a read segment") then return nil end
		lists.reads = lists.reads + 1
		if self:segment(tree, true) == 0 then lists.zero = true else lists.reduced = true end
	end
	generated(tree, g.reads, lists.reads)
	tree = self.tree:add(self.tvb(self.at, 0), "Write list")
	while true do
		local more = self:present("the Write list")
		if more == nil then return nil end
		if not more then break end
		lists.writes = lists.writes + 1
		if not self:write_chunk(tree, "a Write chunk") then return nil end
	end
	generated(tree, g.writes, lists.writes)
	local more = self:present("the Reply chunk")
	if more == nil then return nil end
	lists.reply = more
	tree = generated(self.tree, g.reply, more)
	if more and not self:write_chunk(tree, "the Reply chunk") then return nil end
	return lists
end

function Reader:forbidden(item, text)
	(item or self.tree):add_proto_expert_info(v2_experts.violation, text)
end

-- direction(name): returns the direction of the message, or nil if it is invalid.
function Reader:direction(name)
	local value, item = self:add(g.direction, name)
	if value and not directions[value] then
		self:bad(("%s is neither CALL (0) nor REPLY (1): %d"):format(name, value))
		return nil
	end
	return value, item
end

-- rpc_message(...): dissects the RPC message behind the header by Wireshark's own dissector. Its
-- XID and msg_type must be those of the header.
function Reader:rpc_message(pinfo, tree, xid, direction, item)
	generated(self.tree, g.payload, self:left())
	if self:left() == 0 then return end
	if self:left() >= 4 and self.tvb(self.at, 4):uint() ~= xid then
		self:forbidden(nil, "The XID MUST be that of the RPC message (RFC 8166, section 4.2.1)")
	elseif self:left() >= 8 and self.tvb(self.at + 4, 4):uint() ~= direction then
		self:forbidden(item, "The direction MUST be the msg_type of the RPC message (the draft, " ..
			"section 4.2.2)")
	end
	-- A malformed RPC message raises an error here, after Wireshark has shown it.
	pcall(rpc.call, rpc, self.tvb(self.at):tvb(), pinfo, tree)
end

local bodies = {}

-- RDMA2_MSG and RDMA2_NOMSG: direction, chunk lists, and the RPC message of the former.
local function chunked(self, pinfo, tree, xid, proc)
	local direction, item = self:direction("rdma_direction")
	if not direction then return end
	local lists = self:chunk_lists()
	if self.hidden > 0 then
		self.tree:add_proto_expert_info(v2_experts.note,
			("%d more segments and chunks are not shown"):format(self.hidden))
	end
	if not lists then return direction end
	self.tree:set_len(self.at)
	if direction == 1 and lists.reads > 0 then
		self:forbidden(nil, "The Read list of a reply MUST be empty (RFC 8166, section 4.3.1)")
	end
	local left = self:left()
	if proc == 1 then
		if left > 0 then
			self:forbidden(nil, ("No RPC message follows the header of RDMA2_NOMSG (RFC 8166, " ..
				"section 4.2.4), but %d octets"):format(left))
		end
		if direction == 0 and not lists.zero then
			self:forbidden(nil, "No Position Zero Read chunk holds the call (RFC 8166, " ..
				"sections 3.5.3 and 4.2.4)")
		elseif direction == 1 and not lists.reply then
			self:forbidden(nil, "No Reply chunk holds the reply (RFC 8166, sections 3.5.3 and " ..
				"4.2.4)")
		end
	elseif left == 0 then
		self:forbidden(nil, "An RPC message MUST follow the header of RDMA2_MSG (the draft, " ..
			"section 4.2.1)")
	else
		if lists.reduced or (direction == 1 and lists.writes > 0) then
			self.tree:add_proto_expert_info(v2_experts.note,
				"Chunks hold parts of the RPC message, which its dissector lacks")
		end
		self:rpc_message(pinfo, tree, xid, direction, item)
	end
	return direction
end
bodies[0] = chunked
bodies[1] = chunked

bodies[4] = function(self)
	local err, item = self:add(g.err, "rdma_err")
	if not err then return 1 end
	if err == 1 then
		local low = self:add(g.low, "rdma_vers_low")
		local high = low and self:add(g.high, "rdma_vers_high")
		if not high then return 1 end
		if low > high then
			self:bad(("The lowest version, %d, is above the highest, %d"):format(low, high))
		elseif low <= 2 and 2 <= high then
			item:add_proto_expert_info(v2_experts.note, "Version 2 is in the range")
		end
	elseif not errors[err] then
		self:bad(("rdma_err %d is not defined (the draft, section 4.2)"):format(err))
	end
	local left = self:left()
	if errors[err] and left > 0 then
		self:forbidden(nil, ("An RPC message MUST NOT follow RDMA2_ERROR (the draft, section " ..
			"4.2.1), but %d octets do"):format(left))
	end
	-- An error goes from the responder to the requester (the draft, section 4.2.2).
	return 1
end

bodies[5] = function(self, pinfo, tree, xid)
	local direction, item = self:direction("rdma_optdir")
	if not direction then return end
	if not self:add(g.opttype, "rdma_opttype") then return direction end
	local length, where = self:add(g.optlen, "rdma_optinfo")
	if not length or not self:has(length, "rdma_optinfo") then return direction end
	local padding = -length % 4
	if length > 0 then self.tree:add(g.optinfo, self.tvb(self.at, length)) end
	self.at = self.at + length
	if padding > 0 then
		if not self:has(padding, "the padding of rdma_optinfo") then return direction end
		if self.tvb:raw(self.at, padding):find("[^%z]") then
			self:forbidden(where, "Padding is of zeros (RFC 4506, section 4.10)")
		end
		self.at = self.at + padding
	end
	self.tree:set_len(self.at)
	-- A whole RPC message, a part of one, or none follows (the draft, section 4.2.1). Octets
	-- that begin like an RPC message are taken for a whole one.
	local left = self:left()
	if self:left() >= 8 and self.tvb(self.at, 4):uint() == xid then
		self:rpc_message(pinfo, tree, xid, direction, item)
	elseif left > 0 then
		generated(self.tree, g.payload, left)
	end
	return direction
end

local function dissect_v2(tvb, pinfo, tree, frame, to)
	local root = tree:add(v2, tvb(0))
	local reader = Reader.new(tvb, root)
	pinfo.cols.protocol = "RPCoRDMA2"
	if frame.conn then generated(root, g.request_in, frame.conn.request) end
	if to then generated(root, g.from, to == "server" and "client" or "server") end

	local xid = reader:add(g.xid, "rdma_xid")
	local version = xid and reader:add(g.vers, "rdma_vers")
	local credit, credits
	if version then credit, credits = reader:add(g.credit, "rdma_credit") end
	local proc = credit and reader:add(g.proc, "rdma_proc")
	if not proc then return end
	pinfo.cols.info = ("%s XID 0x%08x"):format(procedures[proc] or "Unknown procedure", xid)
	if not bodies[proc] then
		reader:bad(("rdma_proc %d is not defined (the draft, section 4.2)"):format(proc))
		return
	end
	-- The header comes first: the dissector of the RPC message changes the tree and the
	-- columns.
	local direction = bodies[proc](reader, pinfo, tree, xid, proc)
	if not direction then return end
	if direction == 0 then frame.call = { xid = xid, handles = reader.handles } end
	frame.xid = xid
	if to then
		generated(root, g.reverse, (direction == 0) == (to == "client"))
	end
	if direction == 1 and credit == 0 then
		reader:forbidden(credits, "The granted value MUST NOT be zero (RFC 8166, section 3.3.1)")
	end
	if proc == 4 or proc == 5 then root:set_len(reader.at) end
end

-- message(...): dissects a whole RDMA Send. ENDING has its connection and the side that receives
-- it.
local function message(tvb, pinfo, tree, frame, first, ending)
	local conn = ending and ending.conn
	if first then
		frame.conn = conn
		frame.to = ending and ending.to
	end
	local known = frame.conn ~= nil and speaks(frame.conn)
	local two = tvb:len() >= 8 and looks_like_v2(tvb, known)
	if first and known and conn.client and conn.server then
		local c2s, s2c = negotiate(conn)
		local limit = frame.to == "server" and c2s or s2c
		if two then limit = math.max(limit, VERSION_TWO_THRESHOLD) end
		if tvb:len() > limit then
			table.insert(frame.violations, { cm_experts.long,
				("%d octets exceed the %s inline threshold of %d (RFC 8797, section 4.2)"):format(
					tvb:len(),
					frame.to == "server" and "client-to-server" or "server-to-client", limit) })
		end
	end
	if not two then return false end
	dissect_v2(tvb, pinfo, tree, frame, frame.to)
	return true
end

-- call_of(frame): returns the call in a packet, if it has one, and the XID. Wireshark's own
-- dissector decodes version 1.
local function call_of(frame)
	if frame.xid then return frame.call, frame.xid end
	local xid = last(see.one_xid)
	if not xid then return nil end
	local handles = {}
	for _, info in ipairs({ see.one_handle() }) do handles[info.value] = true end
	return { xid = xid, handles = handles }, xid
end

-- invalidates(...): checks the rules of RFC 8797, section 4.1. TAG is the Steering Tag that a Send
-- with Invalidate invalidates. ALONE: the packet has no segment of another Send, so TAG belongs to
-- the message whose XID is known.
local function invalidates(frame, ending, tag, alone)
	local conn = ending and ending.conn
	if not conn or not speaks(conn) then return end
	local call, xid = call_of(frame)
	conn.calls = conn.calls or {}
	if call and ending.to == "server" then conn.calls[xid] = call.handles end
	if not tag then return end
	if conn.client and conn.server then
		local _, _, agreed = negotiate(conn)
		if not agreed then
			table.insert(frame.violations, { cm_experts.invalidates,
				"Send with Invalidate, although not both peers have set R (RFC 8797, section 4.1)" })
		end
	end
	local handles = alone and xid and ending.to == "client" and conn.calls[xid]
	if handles and not handles[tag] then
		table.insert(frame.violations, { cm_experts.foreign,
			("Steering Tag 0x%08x is of no chunk of the call with XID 0x%08x (RFC 8797, section 4.1)")
				:format(tag, xid) })
	end
end

local function is_send(opcode)
	return SEND_ONLY[opcode] or SEND_LAST[opcode] or opcode == SEND_FIRST or opcode == SEND_MIDDLE
end

-- ib_send(...): takes the payload of one packet of a reliable connection. A Send that is longer
-- than the path's MTU is sent as First, Middle and Last, with consecutive sequence numbers.
local function ib_send(tvb, pinfo, tree, opcode)
	local queue_pair, psn = last(see.queue_pair), last(see.psn)
	local frame, first = frame_of(pinfo)
	frame.given.ib = true
	-- Wireshark 4.4 does not remove the padding to a multiple of four octets.
	local pad = last(see.pad) or 0
	if pad > 0 and tvb:len() % 4 == 0 and tvb:len() > pad then
		tvb = tvb(0, tvb:len() - pad):tvb()
	end
	local ending = by_end[comm_key(pinfo.net_dst, queue_pair)]
	if SEND_ONLY[opcode] then return message(tvb, pinfo, tree, frame, first, ending) end

	if first then
		local key = ("%s/%s/%d"):format(tostring(pinfo.net_src), tostring(pinfo.net_dst), queue_pair)
		local raw = tvb:len() > 0 and tvb:raw(0, tvb:len()) or ""
		local so_far = partial[key]
		if opcode == SEND_FIRST then
			partial[key] = { psn = psn, parts = { raw } }
		elseif so_far and psn == (so_far.psn + 1) & 0xffffff then
			so_far.psn = psn
			table.insert(so_far.parts, raw)
			if SEND_LAST[opcode] then
				frame.whole = table.concat(so_far.parts)
				partial[key] = nil
			end
		elseif not (so_far and psn == so_far.psn) then
			-- This is not a retransmission of the last packet, so a packet is missing.
			partial[key] = nil
		end
	end
	if not frame.whole or frame.whole == "" then return false end
	return message(ByteArray.new(frame.whole, true):tvb("Reassembled Send"), pinfo, tree, frame,
		first, ending)
end

local function ib_payload(tvb, pinfo, tree)
	local opcode = last(see.opcode)
	if not opcode or not is_send(opcode) or tvb:len() < tvb:reported_len() then return false end
	return ib_send(tvb, pinfo, tree, opcode)
end

local function ending_of_stream(pinfo)
	local conn = by_stream[last(see.stream) or -1]
	return conn and { conn = conn, to = pinfo.dst_port == conn.port and "client" or "server" }
end

-- Wireshark has reassembled the segments of a Send before it calls this.
local function iwarp_payload(tvb, pinfo, tree)
	if not RDMAP_SEND[last(see.rdmap) or -1] or not last(see.ddp_last) or
		tvb:len() < tvb:reported_len() then
		return false
	end
	local frame, first = frame_of(pinfo)
	local number = last(see.ddp_message)
	if number then frame.given[number] = true end
	return message(tvb, pinfo, tree, frame, first, ending_of_stream(pinfo))
end

-- Wireshark moves the heuristic that took a packet to the front of its list. The heuristic of
-- version 1 also takes Sends of version 2 that have a procedure of version 1, and shows nothing of
-- them. Of several Sends in one TCP segment, Wireshark 4.4 calls the heuristics for the first one
-- only. The functions below dissect the Sends for which Wireshark has not called the heuristics
-- above.

local function ib_passed_over(pinfo, tree, opcode)
	local begin = see.ieth() or see.immediate() or see.bth()
	local crc = see.crc()
	if not begin or not crc then return end
	local tvb, at = begin.source, begin.offset + begin.len
	if at < crc.offset and crc.offset <= tvb:len() then
		ib_send(tvb(at, crc.offset - at):tvb(), pinfo, tree, opcode)
	end
end

-- append(...): adds a segment to its Send. Returns the Send once it is whole.
local function append(key, number, offset, raw, is_last)
	local send = partial[key]
	if offset == 0 then
		send = { number = number, length = 0, parts = {} }
	elseif not send or send.number ~= number or send.length ~= offset then
		partial[key] = nil
		return nil
	end
	send.length = send.length + #raw
	table.insert(send.parts, raw)
	partial[key] = not is_last and send or nil
	return is_last and table.concat(send.parts) or nil
end

local function iwarp_passed_over(pinfo, tree, frame, first)
	local headers, lengths = { see.ddp() }, { see.ulpdu_length() }
	local tagged, ends, opcodes = { see.ddp_tagged() }, { see.ddp_last() }, { see.rdmap() }
	local numbers, offsets = { see.ddp_message() }, { see.ddp_offset() }
	if #headers ~= #lengths or #headers ~= #tagged or #headers ~= #opcodes or #headers ~= #ends then
		return
	end
	local key = ("%s/%d"):format(tostring(last(see.stream)), pinfo.src_port)
	local untagged = 0
	for i, header in ipairs(headers) do
		if not tagged[i].value then
			untagged = untagged + 1
			local number, offset = numbers[untagged], offsets[untagged]
			local tvb, at = header.source, header.offset + header.len
			local length = lengths[i].value - header.len
			if number and offset and RDMAP_SEND[opcodes[i].value] and length > 0 and
				at + length <= tvb:len() then
				number = number.value
				if first then
					local whole = append(key, number, offset.value, tvb:raw(at, length), ends[i].value)
					if not frame.given[number] then frame.sends[number] = whole end
				end
				local whole = frame.sends[number]
				if whole and ends[i].value then
					message(ByteArray.new(whole, true):tvb("Send"), pinfo, tree, frame, first,
						ending_of_stream(pinfo))
				end
			end
		end
	end
end

-- Runs after all other dissectors: shows the private data of MPA, the Sends that the heuristics did
-- not get, and the rules of the connection that the packet breaks.
function cm.dissector(_, pinfo, tree)
	if see.mpa_request() or see.mpa_reply() then mpa_private(pinfo, tree) end
	local opcode = last(see.opcode)
	if opcode and is_send(opcode) then
		local frame, first = frame_of(pinfo)
		if not frame.given.ib then ib_passed_over(pinfo, tree, opcode) end
		if first then
			local tag = SEND_INVALIDATES[opcode] and see.ieth()
			invalidates(frame, by_end[comm_key(pinfo.net_dst, last(see.queue_pair) or 0)],
				tag and tag.len == 4 and tag.range:uint() or nil, true)
		end
	elseif see.ddp() then
		local frame, first = frame_of(pinfo)
		iwarp_passed_over(pinfo, tree, frame, first)
		if first then
			-- One TCP segment can hold DDP segments of several Sends. The Steering Tag and the
			-- XID that Wireshark shows last may then be of different Sends.
			local segments = 0
			for _, info in ipairs({ see.rdmap() }) do
				if RDMAP_SEND[info.value] then segments = segments + 1 end
			end
			-- Wireshark shows a Steering Tag for Sends with Invalidate only.
			invalidates(frame, ending_of_stream(pinfo), last(see.steering_tag), segments == 1)
		end
	end
	local frame = frames[pinfo.number]
	if not frame or #frame.violations == 0 then return end
	local root = tree:add(cm)
	root:append_text(", a rule of its connection is broken")
	generated(root, f.request_in, frame.conn and frame.conn.request or 0)
	for _, violation in ipairs(frame.violations) do
		root:add_proto_expert_info(violation[1], violation[2])
	end
end

cm:register_heuristic("infiniband.mad.cm.private", cm_private)
v2:register_heuristic("infiniband.payload", ib_payload)
v2:register_heuristic("iwarp_ddp_rdmap", iwarp_payload)
register_postdissector(cm)
