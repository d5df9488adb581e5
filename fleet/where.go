package fleet

import "strings"

// At names the tree at path of node, as it is named in a fleet of many hosts: NODE:PATH.
func At(node, path string) string { return node + ":" + path }

// Where takes NODE:PATH apart. Whatever else is named is this host's, and node is empty.
func Where(tree string) (node, path string) {
	node, path, ok := strings.Cut(tree, ":")
	if !ok || node == "" || strings.Contains(node, "/") || !strings.HasPrefix(path, "/") {
		return "", tree
	}
	return node, path
}
