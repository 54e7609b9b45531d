// The status bar item: what the server is doing.

import { MarkdownString, StatusBarAlignment, ThemeColor, window, type Disposable } from 'vscode';
import type { Status } from './protocol';

const ICONS: Record<Status['state'], string> = {
    'no-task': '$(circle-outline)',
    running: '$(sync~spin)',
    ready: '$(check)',
    failed: '$(error)',
};

export class StatusItem implements Disposable {
    private readonly item = window.createStatusBarItem('agentctx.status', StatusBarAlignment.Right, 90);

    constructor() {
        this.item.name = 'agentctx';
        this.item.command = 'agentctx.setTask';
        this.stopped('not started');
    }

    /** The server isn't there: why. */
    stopped(why: string): void {
        this.show('$(debug-disconnect) agentctx', why, true);
    }

    starting(): void {
        this.show('$(sync~spin) agentctx', 'The server is starting', false);
    }

    update(status: Status): void {
        const { error, warning } = status.findings;
        const found = error + warning > 0 ? ` ${error + warning}` : '';
        const kept = status.state === 'ready' ? ` ${status.kept}/${status.limit}` : '';
        const icon = status.state === 'ready' && error + warning > 0 ? '$(warning)' : ICONS[status.state];
        const task = status.request === '' ? '' : `\n\nTask: ${status.request}`;
        this.show(`${icon}${found} agentctx${kept}`, `${status.message}${task}`, status.state === 'failed');
    }

    dispose(): void {
        this.item.dispose();
    }

    private show(text: string, tooltip: string, problem: boolean): void {
        this.item.text = text;
        this.item.tooltip = new MarkdownString(tooltip);
        this.item.backgroundColor = problem ? new ThemeColor('statusBarItem.warningBackground') : undefined;
        this.item.show();
    }
}
