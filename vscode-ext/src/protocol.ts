// The custom messages of `agentctx lsp`; the Python side is agentctx/lsp/features/task.py and spans.py.

import { NotificationType, RequestType, RequestType0 } from 'vscode-languageclient/node';
import type { Range } from 'vscode-languageclient/node';

export interface TaskParams {
    request: string;
    /** pytest node ids, or paths of test files */
    tests: string[];
    /** paths of log files */
    logs: string[];
    /** PATH, PATH:LINE or PATH#SYMBOL */
    focus: string[];
    budget: number | null;
}

export interface Status {
    state: 'no-task' | 'running' | 'ready' | 'failed';
    /** one line for people */
    message: string;
    request: string;
    kept: number;
    limit: number;
    findings: { error: number; warning: number; note: number };
}

export interface Span {
    range: Range;
    kept: boolean;
}

export const setTask = new RequestType<TaskParams, Status, void>('agentctx/setTask');
export const getStatus = new RequestType0<Status, void>('agentctx/status');
export const statusChanged = new NotificationType<Status>('agentctx/statusChanged');
export const getSpans = new RequestType<{ uri: string }, Span[], void>('agentctx/spans');
