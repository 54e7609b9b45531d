// Bundles the extension into out/extension.js, and writes the licenses of what the bundle contains.
// The source map (out/extension.js.map) stays here: it turns the places of a bug report into lines.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const { metafile } = await build({
    entryPoints: ['src/extension.ts'],
    outfile: 'out/extension.js',
    bundle: true,
    external: ['vscode'],
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    minify: true,
    sourcemap: 'external',
    sourcesContent: false,
    legalComments: 'none', // ThirdPartyNotices.txt has them
    metafile: true,
    logLevel: 'warning',
});

/** The folder of the package that a bundled file belongs to. */
const packageOf = (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];

/** `== NAME VERSION (LICENSE)` and the text of its license. */
function notice(folder) {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((one) => /^licen[cs]e(\.|$)/i.test(one));
    if (file === undefined) {
        throw new Error(`${folder} has no license file: it must not be bundled`);
    }
    return `== ${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}

const folders = new Set(Object.keys(metafile.inputs).map(packageOf).filter(Boolean));
const notices = [...folders].map(notice).sort();
writeFileSync('ThirdPartyNotices.txt', `This extension contains the following libraries.\n\n${notices.join('\n\n')}`);
