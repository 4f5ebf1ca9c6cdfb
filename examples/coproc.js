#!/usr/bin/env node
// A co-process for `weir work` in Node: adds the numbers of a JSON array.
//
//     weir work --coproc 'sum=node coproc.js'
//
// docs/coproc-protocol.md is the specification.
'use strict';
const { createInterface } = require('readline');
const { inspect } = require('util');

// console.log() must not break the protocol.
console.log = (...words) => console.error(...words);
const write = (fields) => process.stdout.write(JSON.stringify(fields) + '\n');

async function handle(job) {
    const numbers = JSON.parse(job.payload);
    return numbers.reduce((a, b) => a + b, 0);
}

createInterface({ input: process.stdin }).on('line', async (line) => {
    const job = JSON.parse(line);
    if ('hello' in job) return write({ hello: 'weir-coproc', version: 1 });
    try {
        write({ call: job.call, answer: 'ok', result: await handle(job) });
    } catch (e) {
        write({ call: job.call, answer: 'retry', error: e instanceof Error ? e.message : inspect(e) });
    }
});
