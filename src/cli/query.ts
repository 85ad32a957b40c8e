import type { Command } from './command.ts';
export const query: Command = { name: 'query', summary: '', help: '', options: [], run: async () => 0 };
