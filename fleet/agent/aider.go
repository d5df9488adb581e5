package agent

// aider is Aider. Its --message would end it after one turn, so charter and task are typed at its prompt.
var aider = Agent{
	Name:    "aider",
	Command: []string{"aider", "{args}"},
	Resume:  []string{"aider", "{args}", "--restore-chat-history"},
	Charter: "typed",
	Ready:   `pattern:(?m)^(\w+ ?)?> $`,
}
