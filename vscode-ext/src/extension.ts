// Starts `agentctx lsp` and wires commands, status bar and decorations to it. The server decides everything.

import { commands, env, window, workspace, type ExtensionContext, type WorkspaceFolder } from 'vscode';
import {
    LanguageClient,
    State,
    TransportKind,
    type LanguageClientOptions,
    type ServerOptions,
} from 'vscode-languageclient/node';
import { DroppedLines } from './decorations';
import { getStatus, setTask, statusChanged, type TaskParams } from './protocol';
import { configuredCommand, installedVersion, NotFound, type Command } from './server';
import { StatusItem } from './status';
import { askForTask } from './task';

const PIN_KIND = 'quickfix.agentctx.pin';
const RESTART_SETTINGS = ['agentctx.path', 'agentctx.args', 'agentctx.interpreter', 'agentctx.budget'];

class Extension {
    private readonly log = window.createOutputChannel('agentctx', { log: true });
    private readonly status = new StatusItem();
    private readonly dropped = new DroppedLines(() => this.running());
    private client: LanguageClient | undefined;
    private task: TaskParams | undefined;
    /** Starts and stops run one after the other. */
    private queue: Promise<void> = Promise.resolve();

    register(context: ExtensionContext): void {
        context.subscriptions.push(
            this.log,
            this.status,
            this.dropped,
            commands.registerCommand('agentctx.restart', () => this.restart()),
            commands.registerCommand('agentctx.showLogs', () => this.log.show()),
            commands.registerCommand('agentctx.setTask', () => this.setTask()),
            commands.registerCommand('agentctx.pinSymbol', () =>
                commands.executeCommand('editor.action.codeAction', { kind: PIN_KIND, apply: 'ifSingle' }),
            ),
            workspace.onDidGrantWorkspaceTrust(() => this.restart()),
            workspace.onDidChangeConfiguration((change) =>
                RESTART_SETTINGS.some((name) => change.affectsConfiguration(name)) ? this.restart() : undefined,
            ),
        );
    }

    restart(): Promise<void> {
        return this.enqueue(async () => {
            await this.stopNow();
            await this.startNow();
        });
    }

    stop(): Promise<void> {
        return this.enqueue(() => this.stopNow());
    }

    /** A step that fails must not keep the next ones from running. */
    private enqueue(step: () => Promise<void>): Promise<void> {
        this.queue = this.queue.then(step).catch((error: unknown) => this.log.error(String(error)));
        return this.queue;
    }

    private running(): LanguageClient | undefined {
        return this.client?.state === State.Running ? this.client : undefined;
    }

    private async stopNow(): Promise<void> {
        const client = this.client;
        this.client = undefined;
        try {
            await client?.dispose();
        } catch (error) {
            this.log.warn(`not stopped: ${String(error)}`); // it never started, or crashed
        }
    }

    private async startNow(): Promise<void> {
        const folder = workspace.workspaceFolders?.[0];
        if (!workspace.isTrusted || folder === undefined) {
            this.status.stopped(folder === undefined ? 'No folder is open' : 'Waits until the workspace is trusted');
            return;
        }
        this.status.starting();
        const command = configuredCommand(folder);
        try {
            this.log.info(`${await installedVersion(command, folder.uri.fsPath)} in ${folder.uri.fsPath}`);
            this.client = this.makeClient(command, folder);
            await this.client.start();
            this.status.update(
                this.task === undefined
                    ? await this.client.sendRequest(getStatus)
                    : await this.client.sendRequest(setTask, this.task),
            );
        } catch (error) {
            void this.failed(error); // its message may stay open for long; a restart must not wait for it
        }
    }

    private makeClient(command: Command, folder: WorkspaceFolder): LanguageClient {
        const server: ServerOptions = {
            command: command.command,
            args: [...command.prefix, 'lsp', ...command.args],
            options: { cwd: folder.uri.fsPath },
            transport: TransportKind.stdio, // adds --stdio
        };
        const options: LanguageClientOptions = {
            documentSelector: [
                { scheme: 'file', language: 'python' },
                { scheme: 'file', pattern: '**/agentctx.toml' },
            ],
            workspaceFolder: folder,
            outputChannel: this.log,
            traceOutputChannel: this.log,
            initializationOptions: { budget: workspace.getConfiguration('agentctx', folder).get('budget', null) },
        };
        const client = new LanguageClient('agentctx', 'agentctx', server, options);
        client.onNotification(statusChanged, (status) => {
            this.status.update(status);
            void this.dropped.refresh();
        });
        client.onDidChangeState(({ newState }) => {
            if (newState === State.Stopped && this.client === client) {
                this.status.stopped('The server has stopped');
            }
        });
        return client;
    }

    private async failed(error: unknown): Promise<void> {
        const message = error instanceof Error ? error.message : String(error);
        this.log.error(message);
        this.status.stopped(message);
        const buttons = error instanceof NotFound ? ['Copy pip Command', 'Open Settings'] : ['Show Logs'];
        const choice = await window.showErrorMessage(`agentctx: ${message}`, ...buttons);
        if (choice === 'Copy pip Command') {
            await env.clipboard.writeText(/'([^']*pip install agentctx)'/.exec(message)?.[1] ?? 'pip install agentctx');
        } else if (choice === 'Open Settings') {
            await commands.executeCommand('workbench.action.openSettings', 'agentctx');
        } else if (choice === 'Show Logs') {
            this.log.show();
        }
    }

    private async setTask(): Promise<void> {
        await this.queue; // the server may just be starting
        const folder = workspace.workspaceFolders?.[0];
        const client = this.running();
        if (folder === undefined || client === undefined) {
            void window.showWarningMessage('agentctx: the server is not running.');
            return;
        }
        const task = await askForTask(folder, this.task);
        if (task === undefined) {
            return;
        }
        this.status.update(await client.sendRequest(setTask, task));
        this.task = task;
    }
}

let extension: Extension | undefined;

export function activate(context: ExtensionContext): void {
    extension = new Extension();
    extension.register(context);
    void extension.restart(); // commands work while the server starts, and when it can't
}

export async function deactivate(): Promise<void> {
    await extension?.stop();
}
