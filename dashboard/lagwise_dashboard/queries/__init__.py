"""All SQL of the dashboard: DuckDB over snapshots of the lake. Nothing here knows Streamlit."""
