// Which command starts the server, and whether it is there.

import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { workspace, type WorkspaceFolder } from 'vscode';

export interface Command {
    command: string;
    /** arguments before the subcommand */
    prefix: string[];
    args: string[];
}

export class NotFound extends Error {}

const INSTALL = 'pip install agentctx';

/** The command of the settings: `agentctx.path`, else `agentctx.interpreter`, else `agentctx` from PATH. */
export function configuredCommand(folder: WorkspaceFolder): Command {
    const settings = workspace.getConfiguration('agentctx', folder);
    const path = expand(settings.get('path', ''), folder);
    const interpreter = expand(settings.get('interpreter', ''), folder);
    const args = settings.get<string[]>('args', []);
    if (path === '' && interpreter !== '') {
        return { command: interpreter, prefix: ['-m', 'agentctx'], args };
    }
    return { command: path === '' ? 'agentctx' : path, prefix: [], args };
}

/** The installed version. Rejects with NotFound, whose message names the command and the way to install it. */
export function installedVersion(command: Command, cwd: string): Promise<string> {
    return new Promise((resolve, reject) => {
        const options = { cwd, timeout: 30_000, windowsHide: true };
        execFile(command.command, [...command.prefix, '--version'], options, (error, stdout, stderr) => {
            if (error === null) {
                resolve(stdout.trim());
                return;
            }
            const shown = [command.command, ...command.prefix].join(' ');
            const python = command.prefix.length > 0 ? `${command.command} -m ` : '';
            const said = stderr.trim().split('\n').at(-1) ?? '';
            const reason = error.code === 'ENOENT' ? 'was not found' : `does not start: ${said || error.message}`;
            reject(
                new NotFound(
                    `'${shown}' ${reason}. Install it with '${python}${INSTALL}', ` +
                        `or set agentctx.path or agentctx.interpreter.`,
                ),
            );
        });
    });
}

function expand(text: string, folder: WorkspaceFolder): string {
    return text.trim().replace(/^~(?=$|[\\/])/, homedir()).replaceAll('${workspaceFolder}', folder.uri.fsPath);
}
