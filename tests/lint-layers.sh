#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes go down only: wiring -> edge -> docs, base, core.  The parts of edge
# never include each other (a part may have several files: zk has its hosts).  <zookeeper/zookeeper.h> has one home, cJSON
# another; libevent lives in edge, base/mailbox, the wiring and the command's
# ZooKeeper loop.  Agent and stub never see each other's headers.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
files=$(find include client agent -name '*.[ch]' | sort)
[ "$(echo "$files" | wc -l)" -gt 20 ] || { echo "sources not found"; exit 1; }

for f in $files; do
	sed -n 's/^[ \t]*#[ \t]*include[ \t]*\([<"][^>"]*\).*/\1/p' "$f" |
	    sed "s|^|$f |"
done | awk -v files="$(echo $files)" '
function dir(path) { sub("/[^/]*$", "", path); return path }
function base(path) { sub(".*/", "", path); return path }
function stem(path) { path = base(path); sub("[.][ch]$", "", path); return path }
function part_of(path) {
	path = stem(path)
	sub("_.*", "", path)
	return path in part ? part[path] : path
}
function say(text) { print file ": " text; bad = 1 }

BEGIN {
	# directory -> directories that it may include from, itself apart
	may["include"] = ""
	may["client/ids"] = "include"
	may["client/stub"] = "client/ids include"
	may["client/seal"] = "client/ids include"
	may["client/cmd"] = "client/stub client/ids include agent/edge" \
	    " agent/docs agent/base agent/core"
	may["agent/core"] = "client/ids include"
	may["agent/base"] = "agent/core client/ids include"
	may["agent/docs"] = "agent/base agent/core client/ids include"
	may["agent/edge"] = "agent/docs agent/base agent/core client/ids include"
	may["agent"] = "agent/edge agent/docs agent/base agent/core client/ids" \
	    " include"
	# files of edge that are part of another
	part["hosts"] = part["resolve"] = part["servers"] = "zk"
	part["session"] = "zk"
	# what a pure file may take from the system
	pure = " assert.h inttypes.h limits.h stdbool.h stddef.h stdint.h" \
	    " string.h "
	n = split(files, list, " ")
	for (i = 1; i <= n; i++) {
		if (list[i] !~ /[.]h$/)
			continue
		h = base(list[i])
		if (h in home) {
			print list[i] ": same name as " home[h]; bad = 1
		}
		home[h] = list[i]
	}
}

{
	file = $1; kind = substr($2, 1, 1); name = substr($2, 2)
	from = dir(file); seen++
	if (!(from in may))
		say("no rule for files of " from)
}

kind == "<" {
	if (name ~ /^zookeeper\// && file != "agent/edge/zk.c")
		say("<" name "> has one home, agent/edge/zk.c")
	if (tolower(name) ~ /cjson/ && from != "agent/docs")
		say("<" name "> has one home, agent/docs/")
	if (name ~ /^(event2\/|event[.]h|evutil|evhttp)/ && \
	    from != "agent/edge" && from != "agent" && \
	    file !~ /^agent\/base\/mailbox[.]/ && \
	    file !~ /^client\/cmd\/zkcall[.]/)
		say("<" name ">: libevent does not live here")
	if ((from == "agent/core" || from == "client/ids") && \
	    index(pure, " " name " ") == 0)
		say("<" name "> in pure code")
	next
}

{
	if (tolower(name) ~ /cjson|zookeeper|event/) {
		say("\"" name "\": write <> for what is not ours"); next
	}
	if (name == "page-assets.h" && file == "agent/page.c")
		next # made by the build, of page.css and page.js
	if (!(name in home)) {
		say("\"" name "\" is no header of this tree"); next
	}
	to = dir(home[name])
	if (from == "agent/edge" && to == from && part_of(file) != part_of(name))
		say("\"" name "\": parts of edge never include each other")
	if (to == from)
		next
	if (from == "client/cmd" && to == "agent/edge" && name != "zk.h")
		say("\"" name "\": of edge, the command uses zk.h alone")
	ok = 0
	n = split(may[from], list, " ")
	for (i = 1; i <= n; i++)
		if (list[i] == to)
			ok = 1
	if (!ok)
		say("\"" name "\" is in " to ", which " from " may not see")
}

END {
	if (seen < 20) {
		print "only " seen " includes found"; bad = 1
	}
	if (!bad)
		print seen " includes, all downwards"
	exit bad
}'
