import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

/** Where a server runs while the page is worked on: `trellis serve` and `npm run dev` beside it. */
const server = process.env.TRELLIS_URL ?? 'http://127.0.0.1:8888';

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    assetsDir: 'assets',
    // Data addresses are not allowed by the content security policy, and every browser that is served knows modules.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // What several pages use lies in one file: alone, each of these is smaller than what it takes to load and to unpack it.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', test: /src[\\/](lib|components)[\\/]/ }] } } },
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/v1', '/mcp', '/healthz', '/readyz', '/ontology'].map((path) => [
        path,
        // The server refuses requests that come from pages of other addresses.
        { target: server, changeOrigin: true, headers: { origin: server } },
      ]),
    ),
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
