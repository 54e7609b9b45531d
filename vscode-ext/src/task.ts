// "Set current task": asks for the request, a test and a log file.

import { Uri, window, workspace, type WorkspaceFolder } from 'vscode';
import type { TaskParams } from './protocol';

/** The answers, or undefined when the user left with Escape. */
export async function askForTask(folder: WorkspaceFolder, last: TaskParams | undefined): Promise<TaskParams | undefined> {
    const request = await window.showInputBox({
        title: 'Current task (1/3)',
        prompt: 'What should be changed? Empty: no task.',
        value: last?.request ?? '',
        ignoreFocusOut: true,
    });
    if (request === undefined) {
        return undefined;
    }
    const tests = await window.showInputBox({
        title: 'Current task (2/3)',
        prompt: 'Failing tests, separated by blanks: PATH[::ID]. Empty: none.',
        value: last?.tests.join(' ') ?? '',
        ignoreFocusOut: true,
    });
    if (tests === undefined) {
        return undefined;
    }
    const logs = await askForLog(folder);
    if (logs === undefined) {
        return undefined;
    }
    const budget = workspace.getConfiguration('agentctx', folder).get<number | null>('budget', null);
    return { request, tests: tests.split(/\s+/).filter(Boolean), logs, focus: [], budget };
}

async function askForLog(folder: WorkspaceFolder): Promise<string[] | undefined> {
    const choices = ['No log file', 'Choose a log file...'] as const;
    const choice = await window.showQuickPick(choices, { title: 'Current task (3/3)', ignoreFocusOut: true });
    if (choice === undefined) {
        return undefined;
    }
    if (choice === choices[0]) {
        return [];
    }
    const picked = await window.showOpenDialog({ defaultUri: Uri.file(folder.uri.fsPath), title: 'Log of the failing run' });
    return picked?.map((uri) => uri.fsPath);
}
