// Dims the lines that the selection dropped, in the visible editors.

import { Range, window, workspace, type Disposable, type TextEditor } from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import { getSpans } from './protocol';

export class DroppedLines implements Disposable {
    private readonly dimmed = window.createTextEditorDecorationType({ opacity: '0.45', isWholeLine: true });
    private readonly subscriptions: Disposable[];

    constructor(private readonly client: () => LanguageClient | undefined) {
        this.subscriptions = [
            this.dimmed,
            window.onDidChangeVisibleTextEditors(() => void this.refresh()),
            workspace.onDidChangeConfiguration((change) => {
                if (change.affectsConfiguration('agentctx.dimDropped')) {
                    void this.refresh();
                }
            }),
        ];
    }

    async refresh(): Promise<void> {
        await Promise.all(window.visibleTextEditors.map((editor) => this.show(editor)));
    }

    dispose(): void {
        this.subscriptions.forEach((one) => one.dispose());
    }

    private async show(editor: TextEditor): Promise<void> {
        const client = this.client();
        const wanted = workspace.getConfiguration('agentctx').get('dimDropped', false);
        if (!wanted || client === undefined || editor.document.languageId !== 'python') {
            editor.setDecorations(this.dimmed, []);
            return;
        }
        const { uri, version } = editor.document;
        const spans = await client.sendRequest(getSpans, { uri: client.code2ProtocolConverter.asUri(uri) });
        if (editor.document.version !== version) {
            return; // typed meanwhile; the next statusChanged refreshes
        }
        const dropped = spans.filter((span) => !span.kept).map(({ range }) => range);
        editor.setDecorations(
            this.dimmed,
            dropped.map(({ start, end }) => new Range(start.line, start.character, end.line, end.character)),
        );
    }
}
