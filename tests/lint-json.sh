#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cJSON's numbers are doubles (and its ints clamp at 2^31 - 1): no ID, tick or
# mark passes through one.  They are looked at in one function, json_exact(),
# which refuses what a double may have spoiled; nothing is written by cJSON but
# the contract inside a state record, for realm_parse(), which is as strict.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
files=$(grep -rlE 'cJSON|json\.h' agent client --include='*.[ch]' | sort)
[ "$(echo "$files" | wc -l)" -gt 5 ] || { echo "sources not found"; exit 1; }

# Comments may speak of them: they are blanked, line for line.
awk '
function code(line,   out, at) {
	out = ""
	while (line != "") {
		if (inside) {
			at = index(line, "*/")
			if (at == 0)
				return out
			line = substr(line, at + 2)
			inside = 0
		} else {
			at = index(line, "/*")
			if (at == 0)
				return out line
			out = out substr(line, 1, at - 1)
			line = substr(line, at + 2)
			inside = 1
		}
	}
	return out
}
FNR == 1 { inside = 0; home = 0 }
{
	line = $0
	gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
	line = code(line)
}
FILENAME ~ /docs\/record\.c$/ { sub(/cJSON_PrintUnformatted\(object\.object\)/, "", line) }
FILENAME ~ /docs\/json\.c$/ && line ~ /^json_exact\(/ { home = 1; homes++ }
line ~ /valueint|valuedouble|cJSON_(Get|Set)Number|cJSON_(Create|Add|Print)/ {
	if (home && line ~ /valuedouble/ && line !~ /valueint|cJSON_/)
		looks++
	else {
		print FILENAME ":" FNR ": cJSON'\''s own number or writer:" line
		bad = 1
	}
}
line ~ /(^|[^a-z_])(double|float|strtod|atof)([^a-z_]|$)/ && !home {
	print FILENAME ":" FNR ": a double beside JSON:" line
	bad = 1
}
line ~ /^}/ { home = 0 }
END {
	if (homes != 1 || looks != 1) {
		print "json_exact: " homes " functions, " looks " looks"
		bad = 1
	}
	exit bad
}' $files || exit 1
echo "$(echo "$files" | wc -l) files"
