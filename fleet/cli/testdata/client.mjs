// A client of the tools in another language: it does what each line of its input says, and answers with a line of JSON.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const how = JSON.parse(process.env.CONNECT);
const transport = how.url
	? new StreamableHTTPClientTransport(new URL(how.url), {
			requestInit: { headers: { Authorization: `Bearer ${process.env.FLEETDECK_TOKEN}` } },
		})
	: new StdioClientTransport({ command: how.command[0], args: how.command.slice(1), env: process.env, stderr: "inherit" });
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(transport);

for await (const line of createInterface({ input: process.stdin })) {
	const { tool, args } = JSON.parse(line);
	let answer;
	try {
		answer = tool ? await client.callTool({ name: tool, arguments: args ?? {} }) : await client.listTools();
	} catch (err) {
		answer = { thrown: String(err) };
	}
	process.stdout.write(JSON.stringify(answer) + "\n");
}
await client.close();
