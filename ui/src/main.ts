import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import { router } from './lib/router.svelte';
import { session } from './lib/session.svelte';

session.start();
router.start();
mount(App, { target: document.getElementById('app')! });
